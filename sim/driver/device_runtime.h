// SPDX-License-Identifier: Apache-2.0
// What device code finds in CUDA's device runtime library, as far as this machine has it: the
// barrier of a whole grid (cooperative_groups.h of the toolkit declares the two functions). In PTX,
// linked in where a program asks for the library. One grid runs at a time, so one barrier serves
// all. Launches from the device are not there.
#pragma once

namespace atp::sim {

inline constexpr char kDeviceRuntime[] = R"(.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 grid_barrier_arrived;
.global .align 4 .u32 grid_barrier_passed;
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .b64 %one;
  mov.u64 %one, 1;
  st.param.b64 [handle], %one;
  ret;
}
.visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %r<8>;
  .reg .pred %p;
  bar.sync 0;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %tid.y;
  or.b32 %r0, %r0, %r1;
  mov.u32 %r1, %tid.z;
  or.b32 %r0, %r0, %r1;
  setp.ne.u32 %p, %r0, 0;
  @%p bra passed;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %nctaid.y;
  mul.lo.u32 %r2, %r2, %r3;
  mov.u32 %r3, %nctaid.z;
  mul.lo.u32 %r2, %r2, %r3;
  sub.u32 %r2, %r2, 1;
  membar.gl;
  ld.volatile.global.u32 %r4, [grid_barrier_passed];
  atom.global.inc.u32 %r5, [grid_barrier_arrived], %r2;
  setp.eq.u32 %p, %r5, %r2;
  @%p bra last;
waiting:
  ld.volatile.global.u32 %r6, [grid_barrier_passed];
  setp.eq.u32 %p, %r6, %r4;
  @%p bra waiting;
  bra passed;
last:
  atom.global.add.u32 %r6, [grid_barrier_passed], 1;
passed:
  membar.gl;
  bar.sync 0;
  mov.u32 %r7, 0;
  st.param.b32 [error], %r7;
  ret;
}
)";

}  // namespace atp::sim
