// Put in front of a unit whose calls were marked (see call_marks.py). Each marked call writes a line of JSON before
// and after it: [">", id, type of the receiver, [receiver and arguments]] and ["<", id, result]; ["=", id, [arguments]]
// stands for a function that was entered. Only the process's first thread writes, to the file that the environment
// names. Nothing of a framework is included: what a value offers is asked of the value.
#pragma once
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#ifndef MIGRATE_LENS_TARGET_NAMESPACES
#define MIGRATE_LENS_TARGET_NAMESPACES  // , "name::" for each namespace of the target's own
#endif

namespace migrate_lens {

constexpr long kMostBytes = 32L << 20;
constexpr int64_t kMostElements = 4096;
constexpr int kMostItems = 64;
constexpr int kDeepest = 3;

template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  size_t begin = text.find("T = ") + 4;
  size_t end = text.find(';', begin);
  return text.substr(begin, (end == std::string_view::npos ? text.size() - 1 : end) - begin);
}

template <class T>
constexpr bool of_framework() {
  std::string_view name = type_name<T>();
  if (name.substr(0, 6) == "const ") name.remove_prefix(6);
  for (std::string_view space : {"at::", "c10::", "torch::", "caffe2::" MIGRATE_LENS_TARGET_NAMESPACES})
    if (name.substr(0, space.size()) == space) return true;
  return false;
}

template <class T>
using plain_t = std::remove_cv_t<std::remove_reference_t<T>>;

#define MIGRATE_LENS_HAS(name, ...)                   \
  template <class T, class = void>                    \
  struct name : std::false_type {};                   \
  template <class T>                                  \
  struct name<T, std::void_t<__VA_ARGS__>> : std::true_type {};
#define MIGRATE_LENS_ON(call) decltype(std::declval<const T&>().call)
MIGRATE_LENS_HAS(is_tensor, MIGRATE_LENS_ON(scalar_type()), MIGRATE_LENS_ON(sizes()), MIGRATE_LENS_ON(strides()),
                 MIGRATE_LENS_ON(data_ptr()), MIGRATE_LENS_ON(defined()))
MIGRATE_LENS_HAS(is_options, MIGRATE_LENS_ON(dtype()), MIGRATE_LENS_ON(device_opt()), MIGRATE_LENS_ON(layout_opt()))
MIGRATE_LENS_HAS(is_device, MIGRATE_LENS_ON(index()), MIGRATE_LENS_ON(is_cuda()), MIGRATE_LENS_ON(is_cpu()))
MIGRATE_LENS_HAS(is_meta, MIGRATE_LENS_ON(toScalarType()))
MIGRATE_LENS_HAS(is_dtype, decltype(T::Byte), decltype(T::Long), decltype(T::BFloat16), decltype(T::Double))
MIGRATE_LENS_HAS(is_torch_scalar, MIGRATE_LENS_ON(isFloatingPoint()), MIGRATE_LENS_ON(toDouble()))
MIGRATE_LENS_HAS(is_paddle_scalar, MIGRATE_LENS_ON(dtype()), MIGRATE_LENS_ON(template to<double>()))
MIGRATE_LENS_HAS(is_optional, MIGRATE_LENS_ON(has_value()), decltype(*std::declval<const T&>()))
MIGRATE_LENS_HAS(is_tuple, decltype(std::tuple_size<T>::value))
MIGRATE_LENS_HAS(is_range, decltype(std::declval<const T&>().begin() != std::declval<const T&>().end()),
                 decltype(*std::declval<const T&>().begin()))
#undef MIGRATE_LENS_ON
#undef MIGRATE_LENS_HAS

inline void quote(std::string& out, std::string_view text) {
  out += '"';
  char buffer[8];
  for (unsigned char letter : text.substr(0, 400)) {
    if (letter == '"' || letter == '\\') {
      (out += '\\') += static_cast<char>(letter);
    } else if (letter < 32 || letter > 126) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", letter);
      out += buffer;
    } else {
      out += static_cast<char>(letter);
    }
  }
  out += '"';
}

inline void number(std::string& out, double value) {
  char buffer[40];
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    std::snprintf(buffer, sizeof buffer, "%.17g", value);
    out += buffer;
    if (std::strpbrk(buffer, ".e") == nullptr) out += ".0";
  }
}

template <class T>
std::pair<std::string_view, int> dtype_of(T type) {
  switch (type) {
    case T::Byte: return {"uint8", 1};
    case T::Char: return {"int8", 1};
    case T::Short: return {"int16", 2};
    case T::Int: return {"int32", 4};
    case T::Long: return {"int64", 8};
    case T::Half: return {"float16", 2};
    case T::Float: return {"float32", 4};
    case T::Double: return {"float64", 8};
    case T::ComplexFloat: return {"complex64", 8};
    case T::ComplexDouble: return {"complex128", 16};
    case T::Bool: return {"bool", 1};
    case T::BFloat16: return {"bfloat16", 2};
    case T::Undefined: return {"undefined", 0};
    default: return {"other", 0};
  }
}

template <class T>
std::string_view device_of(const T& device) {
  return device.is_cuda() ? "cuda" : device.is_cpu() ? "cpu" : "other";
}

template <class T>
void show(std::string& out, const T& value, int depth = 0);

template <class T>
void show_data(std::string& out, const T& tensor, int64_t count, int width) {
  const auto* data = static_cast<const unsigned char*>(static_cast<const void*>(tensor.data_ptr()));
  if (data == nullptr && count > 0) {
    out += "null";
    return;
  }
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  const int64_t step = count > kMostElements ? count / kMostElements : 1;
  if (step > 1) out += "[\"S\"," + std::to_string(step) + ",";
  out += '"';
  for (int64_t index = 0; index < count; index += step) {
    int64_t left = index, place = 0;
    for (int64_t axis = static_cast<int64_t>(sizes.size()) - 1; axis >= 0; --axis) {
      place += left % sizes[axis] * strides[axis];
      left /= sizes[axis];
    }
    for (int byte = 0; byte < width; ++byte) {
      const unsigned char value = data[place * width + byte];
      out += "0123456789abcdef"[value >> 4];
      out += "0123456789abcdef"[value & 15];
    }
  }
  out += '"';
  if (step > 1) out += ']';
}

template <class T>
void show_tensor(std::string& out, const T& tensor) {
  if (!tensor.defined()) {
    out += "null";
    return;
  }
  const auto type = dtype_of(tensor.scalar_type());
  const std::string_view device = device_of(tensor.device());
  int64_t count = 1;
  std::string sizes, strides;
  for (int64_t extent : tensor.sizes()) {
    sizes += (sizes.empty() ? "" : ",") + std::to_string(extent);
    count *= extent;
  }
  for (int64_t stride : tensor.strides()) strides += (strides.empty() ? "" : ",") + std::to_string(stride);
  ((out += "[\"T\",\"") += type.first) += "\",[" + sizes + "],";
  if (device == "cpu" && type.second > 0) {
    show_data(out, tensor, count, type.second);
  } else {
    out += "null";
  }
  ((out += ",\"") += device) += "\",[" + strides + "]]";
}

template <class T>
void show_items(std::string& out, const T& items, int depth) {
  int count = 0;
  out += "[\"L\",[";
  for (const auto& item : items) {
    if (count == kMostItems) break;
    if (count++ > 0) out += ',';
    show(out, item, depth + 1);
  }
  out += "]]";
}

template <class T>
void show_value(std::string& out, const T& value, int depth) {
  using U = plain_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (is_dtype<U>::value && std::is_enum_v<U>) {
    ((out += "[\"D\",\"") += dtype_of(value).first) += "\"]";
  } else if constexpr (std::is_integral_v<U>) {
    out += std::to_string(value);
  } else if constexpr (std::is_floating_point_v<U>) {
    number(out, static_cast<double>(value));
  } else if constexpr (std::is_null_pointer_v<U>) {
    out += "null";
  } else if constexpr (std::is_pointer_v<U> && !std::is_convertible_v<const T&, std::string_view>) {
    out += "[\"O\",\"pointer\"]";
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    if constexpr (std::is_pointer_v<U>) {
      if (value == nullptr) {
        out += "null";
        return;
      }
    }
    quote(out, value);
  } else if constexpr (is_tensor<U>::value) {
    show_tensor(out, value);
  } else if constexpr (is_meta<U>::value) {
    show(out, value.toScalarType(), depth);
  } else if constexpr (is_options<U>::value) {
    out += "[\"t\",[";
    show(out, value.dtype(), depth);
    out += ',';
    show(out, value.device(), depth);
    out += "]]";
  } else if constexpr (is_device<U>::value) {
    ((out += "[\"V\",\"") += device_of(value)) += "\"]";
  } else if constexpr (is_torch_scalar<U>::value) {
    if (value.isFloatingPoint()) {
      number(out, value.toDouble());
    } else if (value.isBoolean()) {
      out += value.toBool() ? "true" : "false";
    } else if (value.isIntegral(false)) {
      out += std::to_string(value.toLong());
    } else {
      out += "[\"O\",\"scalar\"]";
    }
  } else if constexpr (is_paddle_scalar<U>::value) {
    using Type = plain_t<decltype(value.dtype())>;
    if (value.dtype() == Type::FLOAT32 || value.dtype() == Type::FLOAT64) {
      number(out, value.template to<double>());
    } else if (value.dtype() == Type::BOOL) {
      out += value.template to<bool>() ? "true" : "false";
    } else if (value.dtype() == Type::INT32 || value.dtype() == Type::INT64) {
      out += std::to_string(value.template to<int64_t>());
    } else {
      out += "[\"O\",\"scalar\"]";
    }
  } else if constexpr (is_optional<U>::value) {
    if (value.has_value()) {
      show(out, *value, depth);
    } else {
      out += "null";
    }
  } else if constexpr (is_tuple<U>::value) {
    out += "[\"t\",[";
    std::apply([&](const auto&... item) {
      bool first = true;
      ((out += first ? "" : ",", first = false, show(out, item, depth + 1)), ...);
    }, value);
    out += "]]";
  } else if constexpr (is_range<U>::value) {
    show_items(out, value, depth);
  } else {
    out += "[\"O\",\"value\"]";
  }
}

template <class T>
void show(std::string& out, const T& value, int depth) {
  if (depth > kDeepest) {
    out += "[\"O\",\"nested\"]";
    return;
  }
  const size_t before = out.size();
  try {
    show_value(out, value, depth);
  } catch (...) {  // a value that its framework refuses to describe
    out.resize(before);
    out += "[\"O\",\"refused\"]";
  }
}

inline void write_line(std::string& line) {
  static const char* const path = std::getenv("MIGRATE_LENS_KERNEL_LOG");
  static const int file = path != nullptr ? ::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  static long left = kMostBytes;
  if (file < 0 || left <= 0) return;
  line += '\n';
  left -= static_cast<long>(line.size());
  if (::write(file, line.data(), line.size()) < 0) left = 0;
}

inline bool first_thread() { return ::syscall(SYS_gettid) == ::getpid(); }

template <class... A>
std::string listed(const A&... values) {
  std::string out = "[";
  bool first = true;
  ((out += first ? "" : ",", first = false, show(out, values)), ...);
  return out + "]";
}

template <class T, class... A>
void enter(int id, const A&... values) {
  if constexpr (std::is_void_v<T> || of_framework<T>()) {
    if (!first_thread()) return;
    std::string line = "[\">\"," + std::to_string(id) + ",";
    quote(line, type_name<T>());
    line += "," + listed(values...) + "]";
    write_line(line);
  }
}

template <class... A>
void entered(int id, const A&... values) {
  if (!first_thread()) return;
  std::string line = "[\"=\"," + std::to_string(id) + "," + listed(values...) + "]";
  write_line(line);
}

// A plain name is told before it is returned, so that it is still moved.
template <class T>
void gave(int id, const T& value) {
  if (!first_thread()) return;
  std::string line = "[\"<\"," + std::to_string(id) + ",";
  show(line, value);
  line += "]";
  write_line(line);
}

template <bool Tells>
struct Leave {
  int id;
  mutable bool told = false;
  explicit Leave(int number) : id(number) {}
  void tell(const std::string& text) const {
    told = true;
    if (!Tells || !first_thread()) return;
    std::string line = "[\"<\"," + std::to_string(id) + "," + text + "]";
    write_line(line);
  }
  ~Leave() {
    if (!told) tell("null");
  }
};

template <class T>
Leave<std::is_void_v<T> || of_framework<T>()> leave(int id) {
  return Leave<std::is_void_v<T> || of_framework<T>()>(id);
}

// The result goes on as what it was: a reference stays one, a value is moved.
template <class T, bool Tells>
T operator,(T&& value, const Leave<Tells>& leave) {
  if constexpr (Tells) {
    std::string text;
    show(text, value);
    leave.tell(text);
  }
  leave.told = true;
  return std::forward<T>(value);
}

}  // namespace migrate_lens
