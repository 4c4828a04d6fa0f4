#!/usr/bin/env python3
"""train.py TOKENS.npz WEIGHTS.npz [options]: second step to the demo model: trains a small decoder of the Qwen3 architecture on
the tokens of prepare.py, and keeps the weights that did best on the held-out chapters, under their names in GGUF, as float32.
Two minutes on one H200 (bfloat16, --compile): 3.107 nats a held-out token. --device cpu with few --steps and --layers shows that
it works, slowly. The seed fixes the order of the text, not the last bits of sums on a GPU.
pip install torch numpy."""
import argparse, math, time
import numpy, torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, FFN = 4096, 256, 4, 2, 64, 768
CONTEXT, THETA, EPSILON = 512, 10000.0, 1e-6

def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)

def norm(size):
    return nn.RMSNorm(size, EPSILON)

def rotated(x, cosine, sine):
    low, high = x.chunk(2, -1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)

class Layer(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = dropout
        self.attn_norm, self.ffn_norm = norm(HIDDEN), norm(HIDDEN)
        self.attn_q, self.attn_k = linear(HIDDEN, HEADS * HEAD_SIZE), linear(HIDDEN, KV_HEADS * HEAD_SIZE)
        self.attn_v, self.attn_output = linear(HIDDEN, KV_HEADS * HEAD_SIZE), linear(HEADS * HEAD_SIZE, HIDDEN)
        self.attn_q_norm, self.attn_k_norm = norm(HEAD_SIZE), norm(HEAD_SIZE)
        self.ffn_gate, self.ffn_up, self.ffn_down = linear(HIDDEN, FFN), linear(HIDDEN, FFN), linear(FFN, HIDDEN)

    def forward(self, x, cosine, sine):
        def dropped(y):
            return F.dropout(y, self.dropout, self.training)
        def heads(y):
            return y.unflatten(-1, (-1, HEAD_SIZE)).transpose(1, 2)
        y = self.attn_norm(x)
        q = rotated(self.attn_q_norm(heads(self.attn_q(y)).float()), cosine, sine)
        k = rotated(self.attn_k_norm(heads(self.attn_k(y)).float()), cosine, sine)
        v = heads(self.attn_v(y))
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        x = x + dropped(self.attn_output(y.transpose(1, 2).flatten(2)))
        y = self.ffn_norm(x)
        return x + dropped(self.ffn_down(dropped(F.silu(self.ffn_gate(y)) * self.ffn_up(y))))

class Model(nn.Module):
    def __init__(self, layers, dropout):
        super().__init__()
        self.dropout = dropout
        self.token_embd = nn.Embedding(VOCABULARY, HIDDEN)
        self.blk = nn.ModuleList(Layer(dropout) for _ in range(layers))
        self.output_norm = norm(HIDDEN)
        angles = torch.outer(torch.arange(CONTEXT), THETA ** (-torch.arange(0, HEAD_SIZE, 2) / HEAD_SIZE))
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                into_sum = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(weight, std=0.03 / math.sqrt(2 * layers) if into_sum else 0.03)

    def forward(self, ids, wanted):
        """The mean loss in nats a token."""
        x = F.dropout(self.token_embd(ids), self.dropout, self.training)
        cosine, sine = self.cosine[:ids.shape[1]], self.sine[:ids.shape[1]]
        for layer in self.blk:
            x = layer(x, cosine, sine)
        logits = F.linear(self.output_norm(x), self.token_embd.weight)  # tied
        return F.cross_entropy(logits.float().flatten(0, 1), wanted.flatten())

def held_out_loss(model, tokens, device):
    model.eval()
    count = (len(tokens) - 1) // CONTEXT * CONTEXT
    ids, wanted = (tokens[i:i + count].view(-1, CONTEXT) for i in (0, 1))
    with torch.no_grad(), torch.autocast(device, torch.bfloat16):
        losses = [model(a, b).item() * len(a) for a, b in zip(ids.split(32), wanted.split(32))]
    model.train()
    return sum(losses) / len(ids)

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokens")
    parser.add_argument("weights")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=64, help="sequences a step")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--compile", action="store_true", help="let torch join kernels: twice as fast, half a minute later")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    device = options.device
    torch.manual_seed(options.seed)
    parts = numpy.load(options.tokens)
    train, held_out = (torch.from_numpy(parts[name].astype(numpy.int64)).to(device) for name in ("train", "held_out"))
    model = Model(options.layers, options.dropout).to(device)
    run = torch.compile(model) if options.compile else model
    groups = [{"params": [w for w in model.parameters() if w.dim() == 2], "weight_decay": options.decay},
              {"params": [w for w in model.parameters() if w.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, options.rate, (0.9, 0.95), fused=device == "cuda")
    warm_up = min(200, options.steps // 10)
    def rate(step):  # up in a line, down in half a cosine to one hundredth
        return min((step + 1) / (warm_up + 1), 1) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * step / options.steps)))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    steps_between, best, start = max(options.steps // 30, 1), math.inf, time.monotonic()
    window = torch.arange(CONTEXT + 1, device=device)
    for step in range(1, options.steps + 1):
        ids = train[torch.randint(len(train) - CONTEXT, (options.batch, 1), device=device) + window]
        with torch.autocast(device, torch.bfloat16):
            loss = run(ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % steps_between == 0 or step == options.steps:
            held = held_out_loss(model, held_out, device)
            print(f"step {step} loss {loss.item():.3f} held out {held:.4f} {(time.monotonic() - start) / step * 1000:.1f} ms/step", flush=True)
            if held < best:
                best = held
                numpy.savez(options.weights, **{name: weight.detach().float().cpu().numpy() for name, weight in model.named_parameters()})
    print(f"best {best:.4f}: {options}")

if __name__ == "__main__":
    main()
