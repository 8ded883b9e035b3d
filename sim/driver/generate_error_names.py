#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of error names from cuda.h, at build time.

The texts behind the names are short sentences of our own making: the name in words. Programs print
them; none may depend on their wording.
"""
import argparse
import re


def words(name):
    return name.replace('CUDA_ERROR_', '').replace('CUDA_', '').replace('_', ' ').lower()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument('--include', required=True, help='folder of cuda.h')
    options.add_argument('--output', required=True, help='output: error_names.inc')
    chosen = options.parse_args()
    with open(chosen.include + '/cuda.h', encoding='utf-8') as header:
        text = header.read()
    body = re.search(r'typedef enum cudaError_enum \{(.*?)\} CUresult;', text, re.S).group(1)
    body = re.sub(r'/\*.*?\*/', '', body, flags=re.S)
    with open(chosen.output, 'w', encoding='utf-8') as out:
        for name, value in re.findall(r'(CUDA_\w+)\s*=\s*(\d+)', body):
            out.write(f'{{{value}, "{name}", "{SPECIAL.get(name, words(name))}"}},\n')


# Where the name in words says too little.
SPECIAL = {
    'CUDA_SUCCESS': 'no error',
    'CUDA_ERROR_INVALID_VALUE': 'invalid argument',
    'CUDA_ERROR_NOT_INITIALIZED': 'initialization error',
    'CUDA_ERROR_INVALID_CONTEXT': 'invalid device context',
    'CUDA_ERROR_ILLEGAL_ADDRESS': 'an illegal memory access was encountered',
    'CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES': 'too many resources requested for launch',
    'CUDA_ERROR_NOT_SUPPORTED': 'operation not supported',
    'CUDA_ERROR_NO_BINARY_FOR_GPU': 'no kernel image is available for execution on the device',
    'CUDA_ERROR_NOT_READY': 'device not ready',
    'CUDA_ERROR_LAUNCH_FAILED': 'unspecified launch failure',
    'CUDA_ERROR_LAUNCH_TIMEOUT': 'the launch timed out and was terminated',
    'CUDA_ERROR_ASSERT': 'device-side assert triggered',
}

if __name__ == '__main__':
    main()
