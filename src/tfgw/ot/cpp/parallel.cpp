#include "parallel.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace tfgw {
namespace {

// How long a thread spins: longer than the pause between the calls of a training loop, because waking a thread may take
// as long as the work it then does. After a moment it yields its processor at every poll.
constexpr std::chrono::microseconds kAlone{50}, kAwake{2000};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
  asm volatile("yield");
#else
  std::this_thread::yield();
#endif
}

// Spins until `ready()`. Returns false on timeout.
template <class Ready>
bool spin_until(Ready ready) {
  const auto start = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration waited{};
  while (waited < kAwake) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      relax();
    }
    if (waited > kAlone) std::this_thread::yield();
    waited = std::chrono::steady_clock::now() - start;
  }
  return false;
}

// The critical sections take less time than blocking on a mutex.
std::unique_lock<std::mutex> locked(std::mutex& mutex) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  for (int i = 0; i < 1000 && !lock; ++i) {
    relax();
    lock.try_lock();
  }
  if (!lock) lock.lock();
  return lock;
}

// Threads that wait for jobs. Never destroyed, because they may outlive everything else in the process.
class Pool {
 public:
  void offer(Job& job, int helpers) {
    const auto lock = locked(mutex_);
    try {
      for (int i = 0; i < helpers; ++i) {
        if (free_ <= int(offers_.size())) start_thread();
        offers_.push_back(&job);
        open_offers_.store(int(offers_.size()), std::memory_order_relaxed);
        if (asleep_ > 0) offered_.notify_one();
      }
    } catch (const std::system_error&) {
      // The system cannot create more threads: the existing ones do the work.
    }
  }

  // Withdraws offers that no thread has accepted, and waits for the others.
  void finish(Job& job, const std::function<void()>& idle) {
    auto lock = locked(mutex_);
    offers_.erase(std::remove(offers_.begin(), offers_.end(), &job), offers_.end());
    open_offers_.store(int(offers_.size()), std::memory_order_relaxed);
    lock.unlock();
    const auto done = [&] { return job.running.load(std::memory_order_acquire) == 0; };
    if (spin_until(done)) return;
    lock.lock();
    while (!finished_.wait_for(lock, std::chrono::milliseconds(20), done)) {
      lock.unlock();
      idle();
      lock.lock();
    }
  }

 private:
  void start_thread() {
    std::thread([this] { help(); }).detach();
    ++free_;
  }

  [[noreturn]] void help() {
    while (true) {
      spin_until([&] { return open_offers_.load(std::memory_order_relaxed) > 0; });
      auto lock = locked(mutex_);
      ++asleep_;
      offered_.wait(lock, [&] { return !offers_.empty(); });
      --asleep_;
      Job& job = *offers_.front();
      offers_.pop_front();
      open_offers_.store(int(offers_.size()), std::memory_order_relaxed);
      --free_, ++job.running;
      lock.unlock();
      job.work();
      lock = locked(mutex_);
      ++free_;
      // The last access to the job: its caller may return now.
      if (job.running.fetch_sub(1, std::memory_order_release) == 1) finished_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable offered_, finished_;
  std::deque<Job*> offers_;
  std::atomic<int> open_offers_{0};  // size of offers_, for spinning threads
  int free_ = 0;                     // idle threads
  int asleep_ = 0;                   // idle threads that must be woken
};

std::atomic<Pool*> current{nullptr};

// Threads do not survive a fork: the child starts with a new pool, whatever the state of the parent's.
Pool& pool() {
  static const bool made = [] {
    current = new Pool;
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { current = new Pool; });
#endif
    return true;
  }();
  (void)made;
  return *current;
}

}  // namespace

void run_with_helpers(Job& job, int helpers, const std::function<void()>& idle) {
  if (helpers < 1) return job.work();
  Pool& threads = pool();
  threads.offer(job, helpers);
  job.work();
  threads.finish(job, idle);
}

}  // namespace tfgw
