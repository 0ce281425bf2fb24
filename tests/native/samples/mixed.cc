#include <ATen/ATen.h>
#include <torch/library.h>
#include <torch/all.h>

namespace own { struct Acc { at::Tensor t; }; }
using namespace at::indexing;
struct Twice : torch::autograd::Function<Twice> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, at::Tensor x) { return x; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list g) {
    torch::autograd::variable_list out = g;
    return out;
  }
};
at::Tensor f1(const at::Tensor& x, int64_t dim) {
  auto y = x.narrow(0, 1, 2).flatten();
  y = x.select(0, 1) + x.flatten();
  c10::List<at::Tensor> list;
  c10::intrusive_ptr<own::Acc> p = c10::make_intrusive<own::Acc>();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "f1", [&] {
    const scalar_t* q = x.data_ptr<scalar_t>();
    for (int i = 0; i < x.numel(); ++i) { std::cout << q[i]; }
    at::bincount(x);
  });
  AT_ERROR("no ", 3);
  AT_ASSERTM(x.dim() == 1, "x");
  TORCH_CHECK_VALUE(x.dim() == 1, "bad");
  at::AutoDispatchBelowAutograd guard;
  at::globalContext().deterministicAlgorithms();
  auto z = torch::tensor({1, 2, 3});
  auto o = at::zeros({2}, x.options().requires_grad(true));
  auto k = c10::DispatchKey::CPU;
  auto d = at::kMPS;
  std::unordered_set<int> us;
  torch::Tensor t2 = torch::nn::functional::relu(x);
  torch::jit::script::Module m;
  TORCH_CHECK_EQ(x.dim(), 1);
  auto s = x.item<float>() + x.item().toFloat();
  if (x.requires_grad()) {}
  x.index({Slice(), 1});
  at::Tensor e = x == x;
  e += 1;
  auto sz = x.sym_sizes();
  at::native::resize_output(e, x.sizes());
  at::TensorIterator it;
  return at::cumsum(x, dim).unsqueeze(0);
}
at::ScalarType st = at::ScalarType::ComplexFloat;
at::ScalarType st2 = torch::kComplexFloat;
torch::Generator gg;
static auto registry = torch::RegisterOperators().op("a::b", &f1);
TORCH_LIBRARY(myns, m) { m.def("f(Tensor x, int d) -> Tensor", &f1); m.set_python_module("foo"); m.def(TORCH_SELECTIVE_SCHEMA("g() -> int")); 
 m.def("q(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag}); m.impl_abstract_pystub("a"); m.def("h", torch::dispatch(c10::DispatchKey::CPU, &f1)); }
TORCH_LIBRARY_IMPL(myns, Meta, m) { m.impl("f", &f1); m.impl("f", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(myns, AutogradCPU, m) { m.impl("f", TORCH_FN(f1)); }
TORCH_LIBRARY_IMPL(_, Autograd, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
#if TORCH_VERSION_MAJOR >= 2
int v;
#else
#error "old"
#endif
