// A thread block on a CPU: each thread is a fibre that runs until a barrier or shuffle of its warp, or a barrier of its
// block. Between two barriers, fibres run in a random order, so that code that relies on one fails. Blocks run one
// after the other.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#define TFGW_DEVICE inline
#define TFGW_NOINLINE
#define TFGW_SHARED static
#define TFGW_GRID_CONSTANT
#define TFGW_KERNEL(...) extern "C" void

namespace tfgw {

// A barrier of a warp or a block that also exchanges values.
struct Barrier {
  int members = 0, arrived = 0;
  uint64_t round = 0;
  std::vector<uint64_t> values[2];  // of this round and the one before, which slow fibres may still read
};

class Block {
 public:
  static Block& current() {
    static Block block;
    return block;
  }

  void run(int index, int blocks, int threads, const std::function<void()>& body) {
    index_ = index, blocks_ = blocks, threads_ = threads, body_ = &body;
    block_ = {threads, 0, 0, {}};
    for (auto& values : block_.values) values.assign(threads, 0);
    warps_.assign((threads + 31) / 32, {});
    for (int w = 0; w < int(warps_.size()); ++w) {
      warps_[w].members = std::min(32, threads - 32 * w);
      for (auto& values : warps_[w].values) values.assign(32, 0);
    }
    fibres_.resize(threads);
    std::vector<int> order(threads);
    for (int t = 0; t < threads; ++t) start(t), order[t] = t;
    for (int running = threads; running > 0;) {
      std::shuffle(order.begin(), order.end(), random_);
      for (int t : order) {
        if (fibres_[t].done) continue;
        active_ = t;
        swapcontext(&scheduler_, &fibres_[t].context);
        if (fibres_[t].done) --running;
      }
    }
  }

  int thread() const { return active_; }
  int threads() const { return threads_; }
  int index() const { return index_; }
  int blocks() const { return blocks_; }

  // Every lane gives a value and sees those of all lanes of its warp.
  const uint64_t* exchange(uint64_t value) { return exchange(warps_[active_ / 32], active_ % 32, value); }
  bool any(bool mine) {
    const uint64_t* all = exchange(block_, active_, mine);
    return std::any_of(all, all + threads_, [](uint64_t theirs) { return theirs != 0; });
  }
  void barrier() { wait(block_); }

  // Asynchronous copies of the active thread, which complete as late as possible.
  void copy_later(void* to, const void* from, size_t size) { fibres_[active_].copies.push_back({to, from, size}); }
  void copy_now() {
    for (const Copy& copy : fibres_[active_].copies) std::memcpy(copy.to, copy.from, copy.size);
    fibres_[active_].copies.clear();
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t size;
  };
  struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    std::vector<Copy> copies;
    bool done = false;
  };
  static constexpr size_t kStack = 256 << 10;

  void start(int t) {
    Fibre& f = fibres_[t];
    if (!f.stack) f.stack.reset(new char[kStack]);
    f.done = false;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = kStack;
    f.context.uc_link = &scheduler_;
    makecontext(&f.context, [] {
      Block& block = current();
      (*block.body_)();
      block.copy_now();
      block.fibres_[block.active_].done = true;
    }, 0);
  }

  const uint64_t* exchange(Barrier& barrier, int place, uint64_t value) {
    const uint64_t round = barrier.round;
    barrier.values[round % 2][place] = value;
    wait(barrier);
    return barrier.values[round % 2].data();
  }

  void wait(Barrier& barrier) {
    const uint64_t round = barrier.round;
    if (++barrier.arrived == barrier.members) {
      barrier.arrived = 0;
      ++barrier.round;
      return;
    }
    const int me = active_;
    while (barrier.round == round) swapcontext(&fibres_[me].context, &scheduler_);
  }

  int index_ = 0, blocks_ = 0, threads_ = 0, active_ = 0;
  const std::function<void()>* body_ = nullptr;
  Barrier block_;
  std::vector<Barrier> warps_;
  std::vector<Fibre> fibres_;
  ucontext_t scheduler_;
  std::mt19937 random_{1};
};

// Of the running block. Memory that was not written yet reads as NaN.
class SharedMemory {
 public:
  static SharedMemory& current() {
    static SharedMemory memory;
    return memory;
  }
  char* bytes() { return bytes_; }
  void clear(int used) {
    std::memset(bytes_, 0xff, used);
    std::memset(bytes_ + used, kUnused, sizeof bytes_ - used);
  }
  bool is_used_beyond(int used) const {
    return std::any_of(bytes_ + used, bytes_ + sizeof bytes_, [](char byte) { return byte != kUnused; });
  }

 private:
  static constexpr char kUnused = 0x5a;
  alignas(16) char bytes_[256 << 10];
};

inline char* dynamic_shared_memory() { return SharedMemory::current().bytes(); }
inline int thread_in_block() { return Block::current().thread(); }
inline int lane() { return thread_in_block() % 32; }
inline int threads_in_block() { return Block::current().threads(); }
inline int block_index() { return Block::current().index(); }
inline int blocks_in_grid() { return Block::current().blocks(); }
inline void sync_warp() { Block::current().exchange(0); }
inline void sync_block() { Block::current().barrier(); }
inline bool any_in_block(bool p) { return Block::current().any(p); }

template <class T>
T shfl(T v, int source) {
  static_assert(sizeof(T) <= 8);
  uint64_t mine = 0;
  std::memcpy(&mine, &v, sizeof v);
  const uint64_t theirs = Block::current().exchange(mine)[source];
  std::memcpy(&v, &theirs, sizeof v);
  return v;
}
template <class T>
T shfl_xor(T v, int distance) {
  return shfl(v, lane() ^ distance);
}
inline u32 ballot(bool p) {
  const uint64_t* all = Block::current().exchange(p);
  u32 out = 0;
  for (int l = 0; l < 32; ++l) out |= u32(all[l] != 0) << l;
  return out;
}
inline u32 warp_min(u32 v) {
  const uint64_t* all = Block::current().exchange(v);
  u32 out = u32(all[0]);
  for (int l = 1; l < 32; ++l) out = u32(all[l]) < out ? u32(all[l]) : out;
  return out;
}
inline u32 warp_max(u32 v) { return ~warp_min(~v); }
inline u64 bits_of(double v) {
  u64 bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}
inline double double_of(u64 bits) {
  double v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
inline void multiply_add(double (&c)[2], double a, double b) {
  const int high = lane() / 4, low = lane() % 4;
  double of_row[4];
  const uint64_t* all = Block::current().exchange(bits_of(a));
  for (int l = 0; l < 4; ++l) of_row[l] = double_of(all[4 * high + l]);
  all = Block::current().exchange(bits_of(b));
  for (int l = 0; l < 4; ++l)
    for (int q = 0; q < 2; ++q) c[q] += of_row[l] * double_of(all[4 * (2 * low + q) + l]);
}
inline void multiply_add(double (&c)[2][2], const double (&a)[2], double b) {
  for (int s = 0; s < 2; ++s) multiply_add(c[s], a[s], b);
}
inline int popc(u32 v) { return __builtin_popcount(v); }
inline int lowest_bit(u32 v) { return __builtin_ffs(int(v)) - 1; }
inline double fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
template <class T>
T in_register(T v) {
  return v;
}
template <class T>
T read_only(const T* at) {
  return *at;
}
template <class T>
void copy_async(T* shared, const T* global) {
  Block::current().copy_later(shared, global, sizeof(T));
}
inline void wait_for_copies() { Block::current().copy_now(); }
inline int atomic_add(int* at, int v) { return (*at += v) - v; }
inline void atomic_max(int* at, int v) { *at = v > *at ? v : *at; }
inline void atomic_min(int* at, int v) { *at = v < *at ? v : *at; }
inline void atomic_or(u32* at, u32 v) { *at |= v; }
inline int atomic_exchange(int* at, int v) { return std::exchange(*at, v); }
inline void fence() {}
template <class T>
T read_fresh(const T* at) {
  return *at;
}

}  // namespace tfgw
