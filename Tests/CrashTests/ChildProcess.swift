// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit
import Synchronization

@testable import CrashChild

/// A real process that works on a store; its log is read through a pipe as it is written.
///
/// Its calls block: make them on a thread that may (see ``onThread(_:)``).
final class ChildProcess: Sendable {
    /// What a child could not be started for.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let pid: pid_t
    private let output: Int32
    private let input: Int32
    private let unread = Mutex([UInt8]())

    /// One at a time, so that no child inherits the other end of another's pipe and keeps it open.
    private static let starting = Mutex(())

    init(_ arguments: [String]) throws {
        let program = BuiltProgram.url("CrashChild").path
        let started = try Self.starting.withLock { _ throws(Failure) in try Self.start(program, arguments) }
        pid = started.pid
        output = started.output
        input = started.input
    }

    deinit {
        close(output)
        close(input)
    }

    private static func start(
        _ program: String,
        _ arguments: [String]
    ) throws(Failure) -> (pid: pid_t, output: Int32, input: Int32) {
        let (reading, childOutput) = try pipeEnds()
        let (childInput, writing) = try pipeEnds()
        defer {
            close(childOutput)
            close(childInput)
        }
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
        #else
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, childInput, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, childOutput, STDOUT_FILENO)
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        let variables = ProcessInfo.processInfo.environment.map { "\($0.key)=\($0.value)" }
        var environment: [UnsafeMutablePointer<CChar>?] = variables.map { strdup($0) } + [nil]
        defer { for variable in environment { free(variable) } }
        var pid = pid_t()
        let number = posix_spawn(&pid, program, &actions, nil, &words, &environment)
        guard number == 0 else {
            close(reading)
            close(writing)
            throw Failure(description: "\(program) could not be started: errno \(number); build all products first")
        }
        return (pid, reading, writing)
    }

    private static func pipeEnds() throws(Failure) -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw Failure(description: "no pipe: errno \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// The next line of the log, waiting for it; nil when the child has ended and all lines were given.
    func nextLine() -> String? {
        while true {
            if let line = takeLine() { return line }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = read(output, &buffer, buffer.count)
            if count > 0 {
                unread.withLock { $0 += buffer[0..<count] }
            } else if count == 0 || errno != EINTR {
                return nil
            }
        }
    }

    private func takeLine() -> String? {
        unread.withLock { bytes in
            guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            defer { bytes.removeSubrange(...end) }
            return String(decoding: bytes[..<end], as: UTF8.self)
        }
    }

    /// Kills the child with SIGKILL and waits until the system has taken it away, its locks included.
    ///
    /// - Returns: whether it was alive until then, by what the system says of its end.
    @discardableResult
    func kill() -> Bool {
        #if canImport(Darwin)
            _ = Darwin.kill(pid, SIGKILL)
        #elseif canImport(Glibc)
            _ = Glibc.kill(pid, SIGKILL)
        #elseif canImport(Musl)
            _ = Musl.kill(pid, SIGKILL)
        #endif
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == SIGKILL
    }

    /// What is left of the log once the child is killed.
    func remainingLines() -> [String] {
        // All that a dead child wrote is in the pipe; nothing is to be waited for.
        _ = fcntl(output, F_SETFL, O_NONBLOCK)
        var lines: [String] = []
        while let line = nextLine() { lines.append(line) }
        return lines
    }
}

/// Runs blocking work on a thread of its own, since the pool's threads are for work that does not wait.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread { continuation.resume(with: Swift.Result(catching: body)) }.start()
    }
}
