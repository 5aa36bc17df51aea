#include "tests/cli/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>

#include "base/check.h"

namespace sluice::cli_test {
namespace {

double now_s() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  int ends[2] = {};
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  return {ends[0], ends[1]};
}

void close_end(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

/// In the child: nothing here may return to the test.
[[noreturn]] void become_program(std::vector<char*> words, const Launch& launch, int in, int out,
                                 int err) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (launch.output == Output::full_disk) dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
  if (launch.error == Output::full_disk) dup2(open("/dev/full", O_WRONLY), STDERR_FILENO);
  if (launch.output == Output::closed) close(STDOUT_FILENO);
  if (launch.error == Output::closed) close(STDERR_FILENO);
  if (!launch.folder.empty() && chdir(launch.folder.c_str()) != 0) _exit(99);
  execv(words.front(), words.data());
  _exit(98);
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const Launch& launch) {
  std::vector<std::string> copies{SLUICE_PROGRAM};
  copies.insert(copies.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& copy : copies) words.push_back(copy.data());
  words.push_back(nullptr);

  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  CHECK(write(in.write_end, launch.input.data(), launch.input.size()) ==
        static_cast<ssize_t>(launch.input.size()));
  start_s_ = now_s();
  process_ = fork();
  CHECK(process_ >= 0);
  if (process_ == 0) become_program(words, launch, in.read_end, out.write_end, err.write_end);
  for (int* end : {&in.read_end, &out.write_end, &err.write_end}) close_end(*end);
  in_ = in.write_end;
  if (!launch.input_stays_open) close_end(in_);
  out_ = out.read_end;
  err_ = err.read_end;
}

Program::~Program() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close_end(in_);
  close_end(out_);
  close_end(err_);
}

/// Reads what has come on either stream. False when both have ended.
bool Program::read_some() {
  pollfd streams[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  poll(streams, 2, -1);
  const auto take = [](const pollfd& stream, int& descriptor, std::string& text) {
    if (stream.fd < 0 || stream.revents == 0) return;
    char buffer[4096];
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count > 0)
      text.append(buffer, static_cast<size_t>(count));
    else
      close_end(descriptor);
  };
  take(streams[0], out_, outcome_.out);
  take(streams[1], err_, outcome_.err);
  return true;
}

bool Program::wait_for(const std::string& stream, const std::string& text) {
  while (stream.find(text) == std::string::npos)
    if (!read_some()) return false;
  return true;
}

bool Program::wait_for_output(const std::string& text) {
  return wait_for(outcome_.out, text);
}
bool Program::wait_for_error(const std::string& text) {
  return wait_for(outcome_.err, text);
}
void Program::send(int signal) const {
  kill(process_, signal);
}
void Program::close_output() {
  close_end(out_);
}

Outcome Program::finish() {
  while (read_some()) {
  }
  int status = 0;
  CHECK(waitpid(process_, &status, 0) == process_);
  process_ = -1;
  outcome_.seconds = now_s() - start_s_;
  if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  return outcome_;
}

Outcome run(const std::vector<std::string>& arguments, const Launch& launch) {
  return Program(arguments, launch).finish();
}

std::string model_path() {
  return SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf";
}

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace sluice::cli_test
