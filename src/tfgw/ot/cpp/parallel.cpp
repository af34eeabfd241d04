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

// How long a thread waits awake: longer than what comes between the calls of a loop, or than the last pair of a call.
constexpr std::chrono::microseconds kAwake{200};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
  asm volatile("yield");
#else
  std::this_thread::yield();
#endif
}

// Waits awake until `ready()`; false if that takes too long.
template <class Ready>
bool spin_until(Ready ready) {
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// Threads that wait for jobs. Never destroyed, as they may outlive everything else in the process.
class Pool {
 public:
  void offer(Job& job, int helpers) {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      for (int i = 0; i < helpers; ++i) {
        if (free_ <= int(offers_.size())) start_thread();
        offers_.push_back(&job);
        open_offers_.store(int(offers_.size()), std::memory_order_relaxed);
        if (asleep_ > 0) offered_.notify_one();
      }
    } catch (const std::system_error&) {
      // The system has no more threads to give: those that there are do the work.
    }
  }

  // Takes back what nobody has begun with, and waits for the others.
  void finish(Job& job, const std::function<void()>& idle) {
    std::unique_lock<std::mutex> lock(mutex_);
    offers_.erase(std::remove(offers_.begin(), offers_.end(), &job), offers_.end());
    open_offers_.store(int(offers_.size()), std::memory_order_relaxed);
    lock.unlock();
    const auto done = [&] { return job.running.load(std::memory_order_acquire) == 0; };
    if (spin_until(done)) {
      lock.lock();  // the last helper may still be about to tell
      return;
    }
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
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    while (true) {
      spin_until([&] { return open_offers_.load(std::memory_order_relaxed) > 0; });
      lock.lock();
      ++asleep_;
      offered_.wait(lock, [&] { return !offers_.empty(); });
      --asleep_;
      Job& job = *offers_.front();
      offers_.pop_front();
      open_offers_.store(int(offers_.size()), std::memory_order_relaxed);
      --free_, ++job.running;
      lock.unlock();
      job.work();
      lock.lock();
      ++free_;
      if (job.running.fetch_sub(1, std::memory_order_release) == 1) finished_.notify_all();
      lock.unlock();
    }
  }

  std::mutex mutex_;
  std::condition_variable offered_, finished_;
  std::deque<Job*> offers_;
  std::atomic<int> open_offers_{0};  // as many as offers_ has, for those who wait awake
  int free_ = 0;                     // threads that are not at work
  int asleep_ = 0;                   // those of them that have to be woken
};

std::atomic<Pool*> current{nullptr};

// Threads do not survive a fork: the child begins with a pool of its own, whatever state the parent's was in.
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
