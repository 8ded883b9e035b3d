// SPDX-License-Identifier: Apache-2.0
// Between the binary form of a trace (protocol/) and the traces of policy/. policy and protocol
// know nothing of each other; this is where they meet. Lossless both ways. Pure; any thread.
#pragma once

#include "policy/raw_trace.h"
#include "policy/trace.h"
#include "protocol/trace_file.h"

namespace atp::cli {

protocol::TraceFile ToFile(const policy::Trace& trace);
protocol::TraceFile ToFile(const policy::RawTrace& trace);
policy::Trace TensorTraceOf(const protocol::TraceFile& file);
policy::RawTrace RawTraceOf(const protocol::TraceFile& file);

}  // namespace atp::cli
