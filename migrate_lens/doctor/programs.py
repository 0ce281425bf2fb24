"""Small programs, each with an outcome that says, without any tracer's help, what its calls must have been."""

FORWARD = """
import torch
import torch.nn.functional as F
a = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
b = torch.tensor([[0.5, 2.0], [8.0, 1.0]])
c = torch.relu(a)
d = c - b
e = F.softmax(d, -1)
f = e.reshape([4])
g = d[0]
h = f.sum()
result = [a, b, c, d, e, f, g, h]
"""
BACKWARD = """
import torch
x = torch.tensor([1.0, 2.0, 3.0])
x.requires_grad_(True)
y = x * x
z = torch.exp(y * 0.1)
loss = z.sum()
loss.backward()
with torch.no_grad():
    w = x * 2.0
result = [x.grad, torch.tensor([1.0, 1.0, 1.0]), w]
"""
IN_PLACE = """
import torch
x = torch.tensor([1.0, 2.0, 3.0])
x.mul_(torch.tensor([2.0, 2.0, 2.0]))
x[1] = 7.0
y = torch.add(x, x)
result = [x, y]
"""
ALIASING = """
import torch
x = torch.zeros([2, 3])
y = x.view([6])
z = x.clone()
w = x.fill_(7.0)
result = [bool((y == 7.0).all()), bool((z == 7.0).all()), w is x]
"""
RANDOMNESS = """
import torch
torch.manual_seed(3)
a = torch.rand([4])
b = torch.ones([4])
c = torch.randn([2, 2])
result = [a, b, c]
"""
CONSTANTS = """
import torch
made = eval("torch.arange(3.0)")
def use(x):
    return x + made
result = [made, use(torch.ones([3]))]
"""
LAYERS = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
last = torch.nn.Linear(4, 2)
x = torch.ones([2, 3])
h = net(x)
y = last(h)
result = [h, y, last.weight]
"""
CONTROL_FLOW = """
import torch
x = torch.tensor(1.0)
times = 0
while x < 100.0:
    x = x * 3.0
    times += 1
if x > 200.0:
    x = torch.relu(x)
else:
    x = torch.neg(x)
state = torch.zeros([2])
for step in range(5):
    state = torch.tanh(state + 0.5)
result = [times, x, state]
"""
EXCEPTIONS = """
import torch
x = torch.ones([2, 3])
said = "nothing"
try:
    torch.matmul(x, x)
except Exception as error:
    said = type(error).__name__
y = torch.relu(x)
try:
    x.no_such_method(1)
except AttributeError:
    said = said + " and AttributeError"
result = [said, y]
"""
HOOKS = """
import torch
seen = []
def hook(layer, given, out):
    seen.append(torch.sum(out))
layer = torch.nn.Linear(2, 2)
layer.register_forward_hook(hook)
y = layer(torch.ones([1, 2]))
result = [y, seen[0], len(seen)]
"""
DATA_LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.tensor(float(index)) * 2.0
total = torch.tensor(0.0)
for batch in DataLoader(Numbers(), batch_size=2, num_workers=0):
    total = total + batch.sum()
result = [total]
"""
THREADS = """
import threading
import torch
done = {}
def work(name, value):
    done[name] = torch.neg(torch.tensor(value))
threads = [threading.Thread(target=work, args=(str(n), float(n))) for n in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
result = [done["0"], done["1"], done["2"]]
"""
STREAMING = """
import os
import torch
a = torch.ones([2])
b = torch.exp(a)
os.kill(os.getpid(), 9)
c = torch.relu(b)
"""
SPARSE = """
import torch
i = torch.tensor([[0, 1], [1, 0]])
x = torch.sparse_coo_tensor(i, torch.tensor([1.0, 2.0]), [2, 2])
result = torch.ones([1])
"""
