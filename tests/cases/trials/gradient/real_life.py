"""Functions as they are written in real life, most of them right; densely set, since only what they compute counts."""

import math
import torch, numpy as np
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

# right
class BatchNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, momentum=0.1, eps=1e-5):
        mean, var = x.mean(0), x.var(0, unbiased=False)
        running_mean.mul_(1-momentum).add_(momentum*mean); running_var.mul_(1-momentum).add_(momentum*var)
        inv = torch.rsqrt(var+eps); hat=(x-mean)*inv
        ctx.save_for_backward(hat, inv, weight)
        return hat*weight+bias
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        hat, inv, w = ctx.saved_tensors
        n = g.shape[0]
        gh = g*w
        gx = inv/n*(n*gh-gh.sum(0)-hat*(gh*hat).sum(0))
        return gx,(g*hat).sum(0),g.sum(0),None,None,None,None

# right
class Cat(Function):
    @staticmethod
    def forward(ctx, dim, *xs):
        ctx.dim=dim; ctx.sizes=[x.shape[dim] for x in xs]
        return torch.cat(xs, dim)
    @staticmethod
    def backward(ctx, g):
        return (None, *g.split(ctx.sizes, ctx.dim))

def cat_inputs():
    return 1, torch.randn(2,3), torch.randn(2,5)
# right: --inputs real_life.py:cat_inputs
class CatGiven(Cat): pass

def lists():
    return ([torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)],), {"k": 2.0}
# right: --inputs real_life.py:lists
def of_list(xs, k):
    return sum(Sq.apply(x) for x in xs)*k

class Sq(Function):
    @staticmethod
    def forward(ctx,x): ctx.save_for_backward(x); return x*x
    @staticmethod
    def backward(ctx,g): return 2*ctx.saved_tensors[0]*g

def as_dict():
    return {"x": torch.randn(4), "scale": torch.tensor(2.0)}
# right: --inputs real_life.py:as_dict
def kw(x, *, scale):
    return Sq.apply(x)*scale

# right
class SingleOnly(Function):
    @staticmethod
    def forward(ctx,x):
        if x.dtype!=torch.float32: raise TypeError("float32 only")
        ctx.save_for_backward(x); return torch.sin(x)
    @staticmethod
    def backward(ctx,g): return torch.cos(ctx.saved_tensors[0])*g

# wrong: input=0
class SingleOnlyWrong(SingleOnly):
    @staticmethod
    def backward(ctx,g): return torch.cos(ctx.saved_tensors[0])*g*1.02

# right
class CumProd(Function):
    @staticmethod
    def forward(ctx,x): 
        y=x.cumprod(-1); ctx.save_for_backward(x,y); return y
    @staticmethod
    def backward(ctx,g):
        x,y=ctx.saved_tensors
        return (g*y).flip(-1).cumsum(-1).flip(-1)/x

# right
class TopK(Function):
    @staticmethod
    def forward(ctx,x,k):
        v,i=x.topk(k,-1); ctx.save_for_backward(i); ctx.shape=x.shape; ctx.mark_non_differentiable(i); return v,i
    @staticmethod
    def backward(ctx,g,_):
        return torch.zeros(ctx.shape,dtype=g.dtype).scatter_(-1,ctx.saved_tensors[0],g),None

# right
class Sort(Function):
    @staticmethod
    def forward(ctx,x):
        v,i=x.sort(-1); ctx.save_for_backward(i); return v
    @staticmethod
    def backward(ctx,g):
        (i,)=ctx.saved_tensors
        return torch.empty_like(g).scatter_(-1,i,g)

# right
class Inverse(Function):
    @staticmethod
    def forward(ctx,a):
        y=torch.linalg.inv(a); ctx.save_for_backward(y); return y
    @staticmethod
    def backward(ctx,g):
        (y,)=ctx.saved_tensors
        return -y.mT@g@y.mT

# right
class LogDet(Function):
    @staticmethod
    def forward(ctx,a):
        ctx.save_for_backward(a); return torch.linalg.slogdet(a)[1]
    @staticmethod
    def backward(ctx,g):
        (a,)=ctx.saved_tensors
        return g[...,None,None]*torch.linalg.inv(a).mT

# right: --shapes "6"
class Fft(Function):
    @staticmethod
    def forward(ctx,x): ctx.n=x.shape[-1]; return torch.fft.rfft(x)
    @staticmethod
    def backward(ctx,g):
        full=torch.zeros(*g.shape[:-1],ctx.n,dtype=g.dtype); full[...,:g.shape[-1]]=g
        return torch.fft.ifft(full).real*ctx.n

def large():
    return torch.randn(64,256,requires_grad=True), torch.randn(128,256,requires_grad=True)
class Lin(Function):
    @staticmethod
    def forward(ctx,x,w): ctx.save_for_backward(x,w); return x@w.t()
    @staticmethod
    def backward(ctx,g):
        x,w=ctx.saved_tensors; return g@w, g.t()@x
# right: --inputs real_life.py:large
class LinLarge(Lin): pass
# wrong: input=1 -- --inputs real_life.py:large
class LinLargeWrong(Lin):
    @staticmethod
    def backward(ctx,g):
        x,w=ctx.saved_tensors; gw=g.t()@x; gw=gw.clone(); gw[:, ::2]*=1.01; return g@w, gw

# right
class Checkpoint(Function):
    @staticmethod
    def forward(ctx,x):
        ctx.save_for_backward(x)
        with torch.no_grad(): return torch.tanh(torch.sin(x))*x
    @staticmethod
    @once_differentiable
    def backward(ctx,g):
        x=ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad(): y=torch.tanh(torch.sin(x))*x
        y.backward(g)
        return x.grad

# right
class Gumbel(Function):
    @staticmethod
    def forward(ctx,logits,tau):
        n=-torch.log(-torch.log(torch.rand_like(logits)))
        y=torch.softmax((logits+n)/tau,-1); ctx.save_for_backward(y); ctx.tau=tau; return y
    @staticmethod
    def backward(ctx,g):
        (y,)=ctx.saved_tensors
        return y*(g-(g*y).sum(-1,keepdim=True))/ctx.tau,None

@torch.library.custom_op("real_life::cube", mutates_args=())
def cube_op(x: torch.Tensor) -> torch.Tensor:
    return x**3
def _setup(ctx, inputs, output): ctx.save_for_backward(inputs[0])
def _back(ctx,g): return 3*ctx.saved_tensors[0]**2*g
cube_op.register_autograd(_back, setup_context=_setup)
# right: --shapes "3,4"
def cube(x): return cube_op(x)

# right
class Quant(Function):
    @staticmethod
    def forward(ctx,x,lo,hi):
        ctx.save_for_backward(x); ctx.r=(lo,hi)
        return torch.round(x.clamp(lo,hi)*15)/15
    @staticmethod
    def backward(ctx,g):
        (x,)=ctx.saved_tensors; lo,hi=ctx.r
        return g*((x>=lo)&(x<=hi)),None,None

# right
class Lsq(Function):
    @staticmethod
    def forward(ctx,x,s,bits):
        q=2**(bits-1)-1; v=x/s; r=v.round().clamp(-q,q); ctx.save_for_backward(v,r); ctx.q=q; return r*s
    @staticmethod
    def backward(ctx,g):
        v,r=ctx.saved_tensors; inside=v.abs()<=ctx.q
        return g*inside, (g*torch.where(inside,r-v,r)).sum().reshape(()), None
def lsq_inputs(): return torch.randn(5), torch.tensor(0.3), 4
# right: --inputs real_life.py:lsq_inputs
class LsqGiven(Lsq): pass

# right: --shapes "2,3,8,8"
class MaxPool(Function):
    @staticmethod
    def forward(ctx,x):
        y,i=F.max_pool2d(x,2,return_indices=True); ctx.save_for_backward(i); ctx.shape=x.shape; return y
    @staticmethod
    def backward(ctx,g):
        return F.max_unpool2d(g,ctx.saved_tensors[0],2,output_size=ctx.shape)

# right: --shapes "unit:4,6;=3"
class Ctc(Function):
    """-log of the sum over monotone paths."""
    @staticmethod
    def forward(ctx,p,n):
        T,S=p.shape
        a=torch.zeros(T,S,dtype=p.dtype); a[0,0]=p[0,0]
        for t in range(1,T):
            for s in range(S): a[t,s]=p[t,s]*(a[t-1,s]+(a[t-1,s-1] if s else 0))
        b=torch.zeros(T,S,dtype=p.dtype); b[T-1,n]=1
        for t in range(T-2,-1,-1):
            for s in range(S): b[t,s]=p[t+1,s]*b[t+1,s]+(p[t+1,s+1]*b[t+1,s+1] if s+1<S else 0)
        total=a[T-1,n]; ctx.save_for_backward(p,a,b,total); return -torch.log(total)
    @staticmethod
    @once_differentiable
    def backward(ctx,g):
        p,a,b,total=ctx.saved_tensors
        return -g*a*b/(p*total),None

# right
class NormClamp(Function):
    @staticmethod
    def forward(ctx,x,eps=1e-6):
        n=x.norm(dim=-1,keepdim=True).clamp(min=eps); ctx.save_for_backward(x); ctx.eps=eps; return x/n
    @staticmethod
    def backward(ctx,g):
        (x,)=ctx.saved_tensors; n=x.norm(dim=-1,keepdim=True)+ctx.eps; y=x/n
        return (g-y*(g*y).sum(-1,keepdim=True))/n,None

# right
class Two(Function):
    @staticmethod
    def forward(ctx,x,flag: bool):
        ctx.flag=flag
        return (x*2, None) if flag else (x*3, None)
    @staticmethod
    def backward(ctx,g,_): return g*(2 if ctx.flag else 3),None

# right
class ReluInplace(Function):
    @staticmethod
    def forward(ctx,x):
        x.clamp_(min=0); ctx.mark_dirty(x); ctx.save_for_backward(x); return x
    @staticmethod
    def backward(ctx,g):
        (y,)=ctx.saved_tensors; return g*(y>0)

class Layer(nn.Module):
    def __init__(s):
        super().__init__(); s.lin=nn.Linear(4,3); s.bn=nn.BatchNorm1d(3)
    def forward(s,x): return Sq.apply(s.bn(s.lin(x)))
# right: --shapes "5,4"
class Net(Layer): pass

# right
def scatter_mean(src, index):
    return Sm.apply(src,index)
class Sm(Function):
    @staticmethod
    def forward(ctx,src,index):
        n=int(index.max())+1; c=torch.zeros(n,dtype=src.dtype).index_add(0,index,torch.ones(len(index),dtype=src.dtype)).clamp(min=1)
        ctx.save_for_backward(index,c); return torch.zeros(n,*src.shape[1:],dtype=src.dtype).index_add(0,index,src)/c.view(-1,*[1]*(src.dim()-1))
    @staticmethod
    def backward(ctx,g):
        index,c=ctx.saved_tensors; return (g/c.view(-1,*[1]*(g.dim()-1)))[index],None

# right
class Temperature(Function):
    @staticmethod
    def forward(ctx, x, temperature):
        ctx.temperature = temperature
        y = torch.softmax(x/temperature, dim=1)
        ctx.save_for_backward(y); return y
    @staticmethod
    def backward(ctx,g):
        (y,)=ctx.saved_tensors
        return (y*(g-(y*g).sum(1,keepdim=True)))/ctx.temperature, None

# right
class Attention(Function):
    @staticmethod
    def forward(ctx,q,k,v):
        s=torch.softmax(q@k.mT/math.sqrt(q.shape[-1]),-1); ctx.save_for_backward(q,k,v,s); return s@v
    @staticmethod
    @once_differentiable
    def backward(ctx,g):
        q,k,v,s=ctx.saved_tensors; gs=g@v.mT; ga=s*(gs-(gs*s).sum(-1,keepdim=True))/math.sqrt(q.shape[-1])
        return ga@k, ga.mT@q, s.mT@g

# right
class EntMax15Like(Function):
    @staticmethod
    def forward(ctx,x,dim=-1):
        y=torch.softmax(x,dim).sqrt(); ctx.save_for_backward(y); ctx.dim=dim; return y
    @staticmethod
    def backward(ctx,g):
        (y,)=ctx.saved_tensors; p=y*y; h=g/(2*y)
        return p*(h-(h*p).sum(ctx.dim,keepdim=True)),None

# right
class PRelu(Function):
    @staticmethod
    def forward(ctx,x,weight):
        ctx.save_for_backward(x,weight)
        w=weight.view(1,-1,*[1]*(x.dim()-2)); return torch.where(x>0,x,w*x)
    @staticmethod
    def backward(ctx,g):
        x,weight=ctx.saved_tensors; w=weight.view(1,-1,*[1]*(x.dim()-2))
        d=[i for i in range(x.dim()) if i!=1]
        return torch.where(x>0,g,w*g), torch.where(x>0,torch.zeros_like(x),x*g).sum(d)

# right
class EmbeddingBag(Function):
    @staticmethod
    def forward(ctx, weight, indices):
        ctx.save_for_backward(indices); ctx.shape=weight.shape
        return weight[indices]
    @staticmethod
    def backward(ctx,g):
        (i,)=ctx.saved_tensors
        out=g.new_zeros(ctx.shape); out.index_put_((i,),g,accumulate=True); return out,None

# right
class SpectralLike(Function):
    @staticmethod
    def forward(ctx, w):
        u,s,v=torch.linalg.svd(w,full_matrices=False); ctx.save_for_backward(u[:,0],v[0]); return s[0]
    @staticmethod
    @once_differentiable
    def backward(ctx,g):
        u,v=ctx.saved_tensors; return g*torch.outer(u,v)

# right
class Gelu(Function):
    @staticmethod
    def forward(ctx,x): ctx.save_for_backward(x); return 0.5*x*(1+torch.erf(x/math.sqrt(2)))
    @staticmethod
    def backward(ctx,g):
        (x,)=ctx.saved_tensors
        return g*(0.5*(1+torch.erf(x/math.sqrt(2)))+x*torch.exp(-x*x/2)/math.sqrt(2*math.pi))

# wrong: input=0
class GeluTanhBackward(Gelu):
    @staticmethod
    def backward(ctx,g):
        (x,)=ctx.saved_tensors
        return g*(0.5*(1+torch.erf(x/math.sqrt(2)))+x*torch.exp(-x*x/2)/math.sqrt(math.pi))

# right
class NumpySolve(Function):
    @staticmethod
    def forward(ctx,a,b):
        x=np.linalg.solve(a.detach().numpy(),b.detach().numpy()); x=torch.as_tensor(x); ctx.save_for_backward(a,x); return x
    @staticmethod
    @once_differentiable
    def backward(ctx,g):
        a,x=ctx.saved_tensors
        gb=torch.as_tensor(np.linalg.solve(a.numpy().T,g.numpy())); return -torch.outer(gb,x),gb

# right
class Dice(Function):
    @staticmethod
    def forward(ctx, probs, target, smooth=1.0):
        i=(probs*target).sum(); u=probs.sum()+target.sum(); ctx.save_for_backward(target,i,u); ctx.smooth=smooth
        return 1-(2*i+smooth)/(u+smooth)
    @staticmethod
    @once_differentiable
    def backward(ctx,g):
        t,i,u=ctx.saved_tensors; s=ctx.smooth
        return g*(-(2*t*(u+s)-(2*i+s))/(u+s)**2),None,None


def rows_inputs():
    return torch.randn(6, 3, dtype=torch.float64, requires_grad=True), torch.tensor([0, 2, 2, 5])


# right: --inputs real_life.py:rows_inputs
class RowsSparsely(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(ids.reshape(1, -1), g.reshape(-1, g.shape[-1]), ctx.shape), None


# wrong: order=backward input=0 -- --inputs real_life.py:rows_inputs
class RowsSparselyTwice(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(ids.reshape(1, -1), 2 * g.reshape(-1, g.shape[-1]), ctx.shape), None
