// SPDX-License-Identifier: Apache-2.0
// The PTX texts of the program (kernel_images.h), read over once for all that asks about their
// kernels. Any thread.
#pragma once

#include <memory>
#include <string>

#include "ptx/parser.h"

namespace atp::shim {

// Lives as long as the process. A text that is not understood has no functions.
const ptx::ParsedModule& ParsedText(const std::shared_ptr<const std::string>& text);

}  // namespace atp::shim
