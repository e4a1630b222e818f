// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit
import Synchronization

@testable import CrashChild

/// A real process that works on a store; its log is read through a pipe as it is written.
///
/// Its calls block: make them on a thread that may (see ``onThread(_:)``).
final class StoreProcess: Sendable {
    private let process: ChildProcess
    private let output = Pipe()
    /// It works until this end is closed.
    private let input = Pipe()
    private let unread = Mutex([UInt8]())

    init(_ arguments: [String]) throws {
        let program = BuiltProgram.url("CrashChild").path
        process = try ChildProcess(program, arguments, input: .pipe(input), output: .pipe(output))
    }

    var pid: pid_t { process.pid }

    /// The next line of the log, waiting for it; nil when the child has ended and all lines were given.
    func nextLine() -> String? {
        while true {
            if let line = takeLine() { return line }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = read(output.fileHandleForReading.fileDescriptor, &buffer, buffer.count)
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
        process.signal(SIGKILL)
        return process.waitUntilExit() == 128 + SIGKILL
    }

    /// What is left of the log once the child is killed.
    func remainingLines() -> [String] {
        // All that a dead child wrote is in the pipe; nothing is to be waited for.
        _ = fcntl(output.fileHandleForReading.fileDescriptor, F_SETFL, O_NONBLOCK)
        var lines: [String] = []
        while let line = nextLine() { lines.append(line) }
        return lines
    }
}
