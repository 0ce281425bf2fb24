#include <ATen/ATen.h>
#include <torch/library.h>
struct Acc : torch::CustomClassHolder { int64_t n=0; };
at::Tensor a1(const at::Tensor& x, std::vector<double> v) { return x; }
at::Tensor a2(const at::Tensor& x, std::optional<at::ScalarType> v) { return x; }
at::Tensor a3(const at::Tensor& x, at::Device v) { return x; }
at::Tensor a4(const at::Tensor& x, c10::SymInt v) { return x; }
at::Tensor a5(const at::Tensor& x, std::array<bool,2> v) { return x; }
at::Tensor a6(const at::Tensor& x, c10::string_view v) { return x; }
at::Tensor a7(const at::Tensor& x, at::IntArrayRef v) { return x; }
at::Tensor a8(const at::Tensor& x, at::TensorList v) { return x; }
at::Tensor a9(const at::Tensor& x, std::optional<at::Tensor> v) { return x; }
at::Tensor a10(const at::Tensor& x, const std::vector<std::optional<at::Tensor>>& v) { return x; }
at::Tensor a11(const at::Tensor& x, at::MemoryFormat v) { return x; }
at::Tensor a12(const at::Tensor& x, float v) { return x; }
at::Tensor a13(const at::Tensor& x, int v) { return x; }
at::Tensor a14(const at::Tensor& x, std::string v) { return x; }
at::Tensor a15(const at::Tensor& x, at::Layout v) { return x; }
std::tuple<at::Tensor, std::vector<at::Tensor>, double> a16(const at::Tensor& x) { return {x, {x}, 1.0}; }
std::vector<std::vector<int64_t>> a17(const at::Tensor& x) { return {}; }
at::Tensor a18(at::Tensor& x, std::optional<at::Scalar> v) { return x; }
at::Tensor a19(const at::Tensor& x, std::tuple<int64_t, double> v) { return x; }
std::map<std::string,int64_t> a20(const at::Tensor& x) { return {}; }
at::Tensor a21(const at::Tensor& x, std::optional<at::IntArrayRef> v) { return x; }
at::Tensor a22(const at::Tensor& x, at::OptionalIntArrayRef v) { return x; }
at::Tensor a23(const at::Tensor& x, c10::complex<double> v) { return x; }
at::Tensor a24(const at::Tensor& x, at::ITensorListRef v) { return x; }
TORCH_LIBRARY(zz, m) {
 m.def("a1", &a1); m.def("a2", &a2);
 m.def("a3", &a3);
 m.def("a4", &a4);
 m.def("a5", &a5);
 m.def("a6", &a6);
 m.def("a7", &a7);
 m.def("a8", &a8);
 m.def("a9", &a9);
 m.def("a10", &a10);
 m.def("a11", &a11);
 m.def("a12", &a12);
 m.def("a13", &a13);
 m.def("a14", &a14);
 m.def("a15", &a15);
 m.def("a16", &a16);
 m.def("a17", &a17);
 m.def("a18", &a18);
 m.def("a19", &a19);
 m.def("a20", &a20);
 m.def("a21", &a21);
 m.def("a22", &a22);
 m.def("a23", &a23);
 m.class_<Acc>("Acc").def(torch::init<>()).def_pickle([](const c10::intrusive_ptr<Acc>& s){return s->n;}, [](int64_t n){return c10::make_intrusive<Acc>();}).def_readwrite("n", &Acc::n).def_property("m", &Acc::n).def_static("s", [](int64_t k){return k;});
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("a1", &a1); }
