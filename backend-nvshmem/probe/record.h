// The record of a PE: one JSON object on each line, written at once. So if the process ends in the middle, the record says in
// which call. Also how the PEs of a run meet without the library: by files in one folder.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

inline void pause_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

// The probe itself cannot go on. This is not an answer about the library.
struct Broken {
    std::string why;
};

__attribute__((format(printf, 1, 2))) inline std::string text(const char *format, ...) {
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

inline std::string quoted(const std::string &plain) {
    std::string json = "\"";
    for (unsigned char c : plain) {
        if (c == '"' || c == '\\') json += '\\';
        if (c < 0x20) json += text("\\u%04x", c);
        else json += char(c);
    }
    return json + '"';
}

inline const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

inline int my_rank() { return atoi(setting("ONESIDED_RANK", "0")); }
inline int all_pes() { return atoi(setting("ONESIDED_PES", "1")); }
inline double time_limit() { return atof(setting("ONESIDED_TIMEOUT", "20")); }
inline std::string in_folder(const std::string &name) {
    return std::string(setting("ONESIDED_PROBE_DIR", ".")) + "/" + name;
}

inline void line(const std::string &json) {
    static int file = getenv("ONESIDED_PROBE_DIR")
                          ? open(in_folder(text("record.%d", my_rank())).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)
                          : STDOUT_FILENO;
    std::string whole = json + "\n";
    if (write(file, whole.data(), whole.size()) != (ssize_t)whole.size()) _exit(3);
}

// A plain field of what was observed.
inline void field(const std::string &key, const std::string &json) {
    line("{\"key\": " + quoted(key) + ", \"value\": " + json + "}");
}
inline void observed(const std::string &key, long long number) { field(key, std::to_string(number)); }
inline void observed(const std::string &key, int number) { field(key, std::to_string(number)); }
inline void observed(const std::string &key, uint64_t number) { field(key, std::to_string(number)); }
inline void observed(const std::string &key, double number) { field(key, text("%.9g", number)); }
inline void observed(const std::string &key, bool yes) { field(key, yes ? "true" : "false"); }
inline void observed(const std::string &key, const std::string &words) { field(key, quoted(words)); }
inline void observed(const std::string &key, const char *words) { field(key, quoted(words)); }

// A part of the answer, in words. It must not differ from run to run without a reason.
inline void say(const std::string &words) { line("{\"say\": " + quoted(words) + "}"); }

// Before every call of the library or of CUDA: what a process was in when it ended.
inline void calling(const char *what) { line("{\"call\": " + quoted(what) + "}"); }
#define CALL(expression) (calling(#expression), expression)

// post and collect: short texts between the PEs of a run. collect waits, within the run's limit.
inline void post(const std::string &name, const std::string &content) {
    std::string path = in_folder(text("%s.%d", name.c_str(), my_rank())), unfinished = path + "~";
    FILE *file = fopen(unfinished.c_str(), "wb");
    if (!file || fwrite(content.data(), 1, content.size(), file) != content.size() || fclose(file) != 0 ||
        rename(unfinished.c_str(), path.c_str()) != 0)
        throw Broken{"cannot write " + path};
}

inline std::string collect(const std::string &name, int from, double limit = time_limit()) {
    std::string path = in_folder(text("%s.%d", name.c_str(), from));
    for (auto start = Clock::now();; pause_ms(1)) {
        if (FILE *file = fopen(path.c_str(), "rb")) {
            std::string content(1 << 16, '\0');
            content.resize(fread(&content[0], 1, content.size(), file));
            fclose(file);
            return content;
        }
        if (seconds_since(start) > limit) throw Broken{text("PE %d never posted %s", from, name.c_str())};
    }
}

// Waits until all PEs are here, without the library.
inline void meet(const std::string &name, double limit = time_limit()) {
    post(name, "");
    for (int pe = 0; pe < all_pes(); pe++) collect(name, pe, limit);
}
