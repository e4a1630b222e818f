// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// A program that is started, awaited, and killed if it takes too long.
public enum TimedProcess {
    /// The result of the program.
    public enum Outcome: Sendable, Equatable {
        /// It could not be started.
        case missing
        /// It exceeded the time limit.
        case late
        /// It failed, with the last line of its standard error.
        case failed(String)
        /// It succeeded, with its standard output.
        case done(String)
    }

    /// Runs a program to its end.
    ///
    /// - Parameters:
    ///   - program: The path of its file.
    ///   - words: Its arguments.
    ///   - seconds: The time limit, after which it is killed.
    public static func run(_ program: URL, _ words: [String], within seconds: Double) -> Outcome {
        let (process, output, errors) = (Process(), Pipe(), Pipe())
        process.executableURL = program
        process.arguments = words
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        do { try process.run() } catch { return .missing }
        let watch = Stopwatch()
        while process.isRunning {
            if watch.seconds > seconds {
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
                return .late
            }
            Thread.sleep(forTimeInterval: 0.02)
        }
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            return .failed(lastWords(of: text(errors)))
        }
        return .done(text(output))
    }

    /// The last line of a program's output, shortened.
    static func lastWords(of text: String) -> String {
        let lines = text.split(separator: "\n").filter { line in line.contains { !$0.isWhitespace } }
        return lines.last.map { String($0.prefix(160)) } ?? "it printed nothing"
    }

    /// The content of a pipe whose writer has ended; the programs here print less than a pipe holds.
    private static func text(_ pipe: Pipe) -> String {
        String(bytes: pipe.fileHandleForReading.availableData, encoding: .utf8) ?? ""
    }
}
