// SPDX-License-Identifier: Apache-2.0
// The exported dlsym. It asks AtpRouteDlsym (lookup.cc) whether the name is ours; if not, it jumps to the real dlsym with the stack as the caller
// left it, so that the real one sees the caller's return address and RTLD_NEXT and RTLD_DEFAULT mean what the caller means.
#if !defined(__x86_64__)
#error "dlsym_entry.S is written for x86-64 only"
#endif

  .text
  .globl dlsym
  .type dlsym, @function
  .p2align 4
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp                 // the callee wants the stack aligned to 16 bytes
  .cfi_adjust_cfa_offset 8
  call AtpRouteDlsym            // rax = value, rdx = answered
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
  movq atp_real_dlsym(%rip), %rax
  testq %rax, %rax
  jz 2f
  jmp *%rax
2:
  ret                           // no dlsym behind us at all: answer null
  .cfi_endproc
  .size dlsym, .-dlsym

  .section .note.GNU-stack, "", @progbits
