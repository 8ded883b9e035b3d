// SPDX-License-Identifier: Apache-2.0
// The exported dlsym and dlopen. Each asks its C++ half (lookup.cc, deepbind.cc) whether this call is ours; if not, it jumps to the real function with
// registers and stack as the caller left them, so that the real one sees the caller's return address: RTLD_NEXT, RTLD_DEFAULT and the search
// path of dlopen depend on who calls.
#if !defined(__x86_64__)
#error "dl_entries.S is written for x86-64 only"
#endif

  .macro entry name route real
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp                 // the callee wants the stack aligned to 16 bytes
  .cfi_adjust_cfa_offset 8
  movq 24(%rsp), %rdx           // who calls, as a third argument
  call \route                   // rax = value, rdx = answered
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rdx, %rdx
  jz 1f
  ret
1:
  movq \real(%rip), %rax
  testq %rax, %rax
  jz 2f
  jmp *%rax
2:
  ret                           // no such function behind us at all: answer null
  .cfi_endproc
  .size \name, .-\name
  .endm

  .text
  entry dlsym, AtpRouteDlsym, atp_real_dlsym
  entry dlopen, AtpRouteDlopen, atp_real_dlopen

  .section .note.GNU-stack, "", @progbits
