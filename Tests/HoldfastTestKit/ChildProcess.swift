// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// Other Apple systems start no processes.
#if os(macOS) || os(Linux)
    package import Foundation
    private import Synchronization

    /// A program as a process of its own, with none of this process's descriptors but its three standard ones.
    ///
    /// Foundation's `Process` counts the descriptors of this process by copying each directory entry of `/proc/self/fd` at its
    /// declared size. From some 1,350 descriptors on, which all tests together reach, that may read beyond the end of a heap and
    /// end the process.
    package final class ChildProcess: Sendable {
        /// Where a standard stream of the program leads to.
        package enum Stream: Sendable {
            case inherited
            case discarded
            case pipe(Pipe)
            case file(String)
        }

        /// The program could not be started.
        package struct Failure: Error, CustomStringConvertible {
            package let description: String
        }

        package let pid: pid_t
        private let exit: Exit

        /// What becomes of it; also known to the thread that waits for it.
        private final class Exit: Sendable {
            let status = Mutex<Int32?>(nil)
            let running = DispatchGroup()
        }

        /// Starts a program.
        ///
        /// - Parameters:
        ///   - program: its path, or a name to be looked up in `PATH`.
        ///   - environment: variables beside those of this process, or in their place.
        ///   - output: its standard output; ``errors`` may be the same pipe.
        package init(
            _ program: String,
            _ arguments: [String] = [],
            environment: [String: String] = [:],
            input: Stream = .discarded,
            output: Stream = .discarded,
            errors: Stream = .inherited
        ) throws {
            var spawn = Spawn()
            defer { spawn.end() }
            try spawn.redirect(STDIN_FILENO, to: input, flags: O_RDONLY) { $0.fileHandleForReading }
            try spawn.redirect(STDOUT_FILENO, to: output, flags: O_WRONLY) { $0.fileHandleForWriting }
            try spawn.redirect(STDERR_FILENO, to: errors, flags: O_WRONLY) { $0.fileHandleForWriting }
            let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            pid = try spawn.start(program, arguments, variables.map { "\($0.key)=\($0.value)" })
            // The program's ends of its pipes: a reader of the others waits as long as anybody has these.
            if case .pipe(let pipe) = input { try? pipe.fileHandleForReading.close() }
            for case .pipe(let pipe) in [output, errors] { try? pipe.fileHandleForWriting.close() }
            let exit = Exit()
            self.exit = exit
            exit.running.enter()
            Thread.detachNewThread { [pid] in
                // It stays a zombie until here, so that its number is nobody else's while it may be signalled.
                var information = siginfo_t()
                while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
                exit.status.withLock { status in
                    var word: Int32 = 0
                    while waitpid(pid, &word, 0) < 0, errno == EINTR {}
                    let signal = word & 0x7F
                    status = signal == 0 ? (word >> 8) & 0xFF : 128 + signal
                }
                exit.running.leave()
            }
        }

        deinit { signal(SIGKILL) }

        /// Runs a program to its end; blocks the thread.
        ///
        /// - Parameter errors: its standard error; nil: what it says there is part of the output.
        /// - Returns: its exit status, and what it wrote.
        package static func run(
            _ program: String,
            _ arguments: [String],
            errors: Stream? = nil
        ) throws -> (status: Int32, output: String) {
            let pipe = Pipe()
            let process = try ChildProcess(program, arguments, output: .pipe(pipe), errors: errors ?? .pipe(pipe))
            let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
            return (process.waitUntilExit(), String(decoding: output, as: UTF8.self))
        }

        /// The same on a thread of its own: a test that blocks one of the few that all tests share holds the others up.
        package static func run(
            _ program: String,
            _ arguments: [String],
            errors: Stream? = nil
        ) async throws -> (status: Int32, output: String) {
            try await onThread { try ChildProcess.run(program, arguments, errors: errors) }
        }

        package var isRunning: Bool { exit.status.withLock { $0 == nil } }

        /// Sends it a signal, if it still runs.
        package func signal(_ number: Int32) {
            exit.status.withLock { status in
                if status == nil { _ = kill(pid, number) }
            }
        }

        /// Waits for its end; blocks the thread.
        ///
        /// - Returns: its exit status, or 128 and the number of the signal that ended it, as a shell tells it.
        @discardableResult
        package func waitUntilExit() -> Int32 {
            exit.running.wait()
            return exit.status.withLock { $0 ?? -1 }
        }

        /// Waits for its end, as ``waitUntilExit()``, without blocking a thread.
        package func end() async -> Int32 {
            await withCheckedContinuation { continuation in
                exit.running.notify(queue: .global()) { continuation.resume(returning: self.waitUntilExit()) }
            }
        }
    }

    /// Runs blocking work on a thread of its own, since the pool's threads are for work that does not wait.
    package func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Thread { continuation.resume(with: Swift.Result(catching: body)) }.start()
        }
    }

    /// The lists that `posix_spawn` takes.
    private struct Spawn {
        #if canImport(Darwin)
            private var actions: posix_spawn_file_actions_t?
            private var attributes: posix_spawnattr_t?
        #else
            private var actions = posix_spawn_file_actions_t()
            private var attributes = posix_spawnattr_t()
        #endif

        init() {
            posix_spawn_file_actions_init(&actions)
            posix_spawnattr_init(&attributes)
        }

        mutating func end() {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }

        mutating func redirect(
            _ descriptor: Int32,
            to stream: ChildProcess.Stream,
            flags: Int32,
            end: (Pipe) -> FileHandle
        ) throws {
            let number =
                switch stream {
                case .inherited: posix_spawn_file_actions_adddup2(&actions, descriptor, descriptor)
                case .discarded: posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", flags, 0)
                case .file(let path): posix_spawn_file_actions_addopen(&actions, descriptor, path, flags, 0)
                case .pipe(let pipe): posix_spawn_file_actions_adddup2(&actions, end(pipe).fileDescriptor, descriptor)
                }
            guard number == 0 else { throw ChildProcess.Failure(description: "no redirection: errno \(number)") }
        }

        mutating func start(_ program: String, _ arguments: [String], _ environment: [String]) throws -> pid_t {
            var flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
            #if canImport(Darwin)
                flags |= POSIX_SPAWN_CLOEXEC_DEFAULT
            #else
                // Other threads open more in the meantime; they get the lowest numbers that are free.
                let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
                for descriptor in 3..<(open.max() ?? 3) + 64 {
                    posix_spawn_file_actions_addclose(&actions, descriptor)
                }
            #endif
            // A thread of the pool may have signals blocked, and this process may ignore some.
            var signals = sigset_t()
            sigemptyset(&signals)
            posix_spawnattr_setsigmask(&attributes, &signals)
            sigfillset(&signals)
            sigdelset(&signals, SIGKILL)
            sigdelset(&signals, SIGSTOP)
            posix_spawnattr_setsigdefault(&attributes, &signals)
            posix_spawnattr_setflags(&attributes, Int16(flags))
            var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
            var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
            defer { for text in words + variables { free(text) } }
            var pid = pid_t()
            let number = posix_spawnp(&pid, program, &actions, &attributes, &words, &variables)
            guard number == 0 else {
                throw ChildProcess.Failure(description: "\(program) could not be started: errno \(number)")
            }
            return pid
        }
    }
#endif
