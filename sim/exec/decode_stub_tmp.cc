// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/decoder.h"
namespace atp::sim::exec {
bool Decoder::DecodeMatrix(const ptx::Op&) { return Fail("unsupported opcode"); }
bool Decoder::DecodeAsync(const ptx::Op&) { return Fail("unsupported opcode"); }
}
