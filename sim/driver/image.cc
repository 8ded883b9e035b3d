// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/image.h"

#include <cstdio>
#include <cstring>

namespace atp::sim {
namespace {

constexpr uint32_t kWrapperMagic =
    0x466243b1;  // __fatBinC_Wrapper_t of the toolkit's fatbinary_section.h
constexpr uint32_t kContainerMagic = 0xba55ed50;  // computeFatBinary header
constexpr uint32_t kElfMagic = 0x464c457f;
constexpr uint16_t kPtxKind = 1;
constexpr const char* kRemedy =
    "rebuild with -no-compress -gencode arch=compute_80,code=compute_80";

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* container;
};

struct ContainerHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // of the entries that follow
};

struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t bytes;             // of the payload, padded
  uint32_t compressed_bytes;  // 0 = the payload is stored as it is
  uint32_t options_offset;
  uint16_t minor, major;
  uint32_t architecture;
};

template <class T>
T Read(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Image Refuse(CUresult result, const std::string& reason) {
  Image image;
  image.result = result;
  image.error = reason;
  return image;
}

// Takes the plain PTX of the greatest architecture that a container holds.
Image FromContainer(const uint8_t* data, size_t size) {
  const auto header = Read<ContainerHeader>(data);
  if (size && (header.header_bytes > size || header.bytes > size - header.header_bytes))
    return Refuse(CUDA_ERROR_INVALID_IMAGE, "the container is cut short");
  const uint8_t* at = data + header.header_bytes;
  const uint8_t* const end = at + header.bytes;
  Image best;
  uint32_t best_architecture = 0;
  bool compressed = false, machine_code = false;
  while (static_cast<size_t>(end - at) >= sizeof(EntryHeader)) {
    const auto entry = Read<EntryHeader>(at);
    const auto left = static_cast<uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
        entry.bytes > left - entry.header_bytes)
      return Refuse(CUDA_ERROR_INVALID_IMAGE, "the container is damaged");
    if (entry.kind != kPtxKind) {
      machine_code = true;
    } else if (entry.compressed_bytes != 0) {
      compressed = true;
    } else if (entry.architecture >= best_architecture) {
      const auto* text = reinterpret_cast<const char*>(at + entry.header_bytes);
      best.ptx.assign(text, strnlen(text, entry.bytes));
      best_architecture = entry.architecture;
    }
    at += entry.header_bytes + entry.bytes;
  }
  if (!best.ptx.empty()) return best;
  const char* found = compressed     ? "the program carries its PTX compressed: "
                      : machine_code ? "the program carries machine code only, no PTX: "
                                     : "the container is empty: ";
  return Refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, std::string(found) + kRemedy);
}

}  // namespace

Image ReadImage(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint32_t magic = 0;
  // Text may be shorter than a magic number: look no further than its end.
  for (size_t i = 0; i < sizeof magic && (!size || i < size); ++i) {
    magic |= static_cast<uint32_t>(bytes[i]) << (8 * i);
    if (bytes[i] == 0) break;
  }
  if (!size && magic == kWrapperMagic) {
    const auto wrapper = Read<Wrapper>(bytes);
    if (!wrapper.container) return Refuse(CUDA_ERROR_INVALID_IMAGE, "the wrapper is empty");
    return ReadImage(wrapper.container, 0);
  }
  if (magic == kContainerMagic) {
    if (size && size < sizeof(ContainerHeader))
      return Refuse(CUDA_ERROR_INVALID_IMAGE, "the container is cut short");
    return FromContainer(bytes, size);
  }
  if (magic == kElfMagic)
    return Refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
                  std::string("the image is machine code (a cubin), not PTX: ") + kRemedy);
  const auto* text = reinterpret_cast<const char*>(bytes);
  Image image;
  image.ptx.assign(text, size ? strnlen(text, size) : std::strlen(text));
  if (image.ptx.find(".version") == std::string::npos)
    return Refuse(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a container of it");
  return image;
}

std::string ReadFile(const char* path) {
  std::string content;
  FILE* file = std::fopen(path, "rb");
  if (!file) return content;
  char buffer[1 << 16];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
    content.append(buffer, got);
  std::fclose(file);
  return content;
}

}  // namespace atp::sim
