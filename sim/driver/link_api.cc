// SPDX-License-Identifier: Apache-2.0
// cuLink*: several PTX texts become one. What a real driver hands out is machine code; here it is
// the joined text, which the module calls take as they take any PTX. Machine code, objects and
// archives cannot be linked, except the device runtime library, in whose place the machine has
// functions of its own.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/driver/device_runtime.h"
#include "sim/driver/driver.h"
#include "sim/driver/image.h"
#include "sim/driver/jit_log.h"
#include "sim/driver/module.h"

namespace atp::sim {
namespace {

struct Linker {  // what a CUlinkState is
  std::vector<std::string> texts;
  std::string joined;  // what cuLinkComplete has given out
  JitLog log;
};

HandleSet<Linker>& Linkers() {  // under the driver's lock
  static auto* const linkers = new HandleSet<Linker>;
  return *linkers;
}

CUresult Refuse(const Linker& linker, CUresult result, const std::string& error) {
  linker.log.Write(error);
  SayCannotLoad(error);
  return result;
}

// CUDA's library of device code, by its name. The archive itself is not read.
bool IsDeviceRuntime(CUjitInputType type, std::string_view name) {
  constexpr std::string_view kArchive = "libcudadevrt.a";
  return type == CU_JIT_INPUT_LIBRARY && name.size() >= kArchive.size() &&
         name.substr(name.size() - kArchive.size()) == kArchive;
}

CUresult Add(Linker* linker, CUjitInputType type, const char* name, const Image& image) {
  if (IsDeviceRuntime(type, name ? name : "")) {
    linker->texts.push_back(kDeviceRuntime);
    return CUDA_SUCCESS;
  }
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
    return Refuse(*linker, CUDA_ERROR_NO_BINARY_FOR_GPU, "only PTX can be linked here");
  if (image.result != CUDA_SUCCESS) return Refuse(*linker, image.result, image.error);
  linker->texts.push_back(image.ptx);
  return CUDA_SUCCESS;
}

// Blanks the directives of which a module has one each, so that lines keep their numbers.
std::string WithoutHeader(std::string text) {
  for (const char* directive : {".version", ".target", ".address_size"}) {
    const size_t at = text.find(directive);
    if (at == std::string::npos) continue;
    const size_t end = std::min(text.find('\n', at), text.size());
    std::fill(text.begin() + static_cast<ptrdiff_t>(at), text.begin() + static_cast<ptrdiff_t>(end),
              ' ');
  }
  return text;
}

// The header of the first text is that of all: what may run is decided opcode by opcode.
std::string Join(const std::vector<std::string>& texts) {
  std::string joined = texts.front();
  for (size_t i = 1; i < texts.size(); ++i) {
    joined += '\n';
    joined += WithoutHeader(texts[i]);
  }
  return joined;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!out || (count && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
  auto* linker = new Linker;
  linker->log = JitLog::Of(count, options, values);
  *out = reinterpret_cast<CUlinkState>(Linkers().Add(linker));
  return CUDA_SUCCESS;
}
ATP_API cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  return cuLinkCreate_v2(count, options, values, out);
}

ATP_API cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t bytes,
                         const char* name, unsigned, CUjit_option*, void**) {
  ATP_CALL(kNeedsContext, cost::kModule);
  Linker* linker = Linkers().Get(handle);
  if (!linker) return CUDA_ERROR_INVALID_HANDLE;
  if (!data || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return Add(linker, type, name, ReadImage(data, bytes));
}
ATP_API cuLinkAddData(CUlinkState handle, CUjitInputType type, void* data, size_t bytes,
                      const char* name, unsigned count, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(handle, type, data, bytes, name, count, options, values);
}

ATP_API cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned,
                         CUjit_option*, void**) {
  ATP_CALL(kNeedsContext, cost::kModule);
  Linker* linker = Linkers().Get(handle);
  if (!linker) return CUDA_ERROR_INVALID_HANDLE;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  const std::string content = ReadFile(path);
  if (content.empty()) return CUDA_ERROR_FILE_NOT_FOUND;
  return Add(linker, type, path, ReadImage(content.data(), content.size()));
}
ATP_API cuLinkAddFile(CUlinkState handle, CUjitInputType type, const char* path, unsigned count,
                      CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(handle, type, path, count, options, values);
}

ATP_API cuLinkComplete(CUlinkState handle, void** image, size_t* bytes) {
  ATP_CALL(kNeedsContext, cost::kModule);
  Linker* linker = Linkers().Get(handle);
  if (!linker) return CUDA_ERROR_INVALID_HANDLE;
  if (!image || linker->texts.empty()) return CUDA_ERROR_INVALID_VALUE;
  std::string joined = Join(linker->texts), error;
  if (!Module::Load(joined, &error)) return Refuse(*linker, CUDA_ERROR_INVALID_PTX, error);
  linker->joined = std::move(joined);
  *image = linker->joined.data();
  if (bytes) *bytes = linker->joined.size() + 1;  // with the zero at its end
  return CUDA_SUCCESS;
}

ATP_API cuLinkDestroy(CUlinkState handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Linker* linker = Linkers().Get(handle);
  if (!linker) return CUDA_ERROR_INVALID_HANDLE;
  Linkers().Remove(linker);
  delete linker;
  return CUDA_SUCCESS;
}
