// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// Instructions counted by valgrind's callgrind, for machines without a performance counter. It runs this program again under
/// valgrind.
///
/// It counts the work in ``CountedWork``, on one thread. The started program prints a line `NAME CALLS` for each piece of
/// counted work, in the order of the work.
public enum CallgrindRun {
    /// Why there is no count: a sentence without its period.
    public struct Failure: Error, Sendable, Equatable {
        /// The sentence.
        public let reason: String
    }

    /// Runs this program with these arguments, and returns the instructions per call.
    ///
    /// - Parameters:
    ///   - words: The arguments.
    ///   - seconds: The time limit.
    /// - Returns: instructions per call, by name.
    public static func instructions(_ words: [String], within seconds: Double) throws(Failure) -> [String: Double] {
        guard let program = Bundle.main.executableURL else {
            throw Failure(reason: "the path of this program is unknown")
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "holdfast-count-\(UUID().uuidString)"
        )
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            throw Failure(reason: "cannot create a folder in \(folder.deletingLastPathComponent().path)")
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        let (bare, out) = (folder.appendingPathComponent("bare").path, folder.appendingPathComponent("out").path)
        // Valgrind's reader of debug information fails on Swift's.
        let shell = URL(fileURLWithPath: "/usr/bin/env")
        let stripped = TimedProcess.run(shell, ["strip", "--strip-debug", "-o", bare, program.path], within: seconds)
        guard case .done = stripped else { throw Failure(reason: "strip is missing or failed; install binutils") }
        let options = [
            "--tool=callgrind", "--callgrind-out-file=\(out)", "--toggle-collect=holdfast_counted",
            "--dump-after=holdfast_counted",
        ]
        switch TimedProcess.run(shell, ["valgrind"] + options + [bare] + words, within: seconds) {
        case .missing, .failed:
            throw Failure(reason: "valgrind is missing or failed; install it (apt-get install valgrind)")
        case .late:
            throw Failure(reason: "valgrind did not finish within \(Int(seconds)) seconds")
        case .done(let text):
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
            let dumps = names.compactMap { $0.hasPrefix("out.") ? Int($0.dropFirst(4)) : nil }.sorted()
            let totals = dumps.compactMap { number -> Int? in
                let bytes = FileManager.default.contents(atPath: "\(out).\(number)")
                return bytes.flatMap { String(bytes: $0, encoding: .utf8) }.flatMap(total)
            }
            return try perCall(text, totals)
        }
    }

    /// Joins the `NAME CALLS` lines with the totals of the dumps, in their order.
    static func perCall(_ text: String, _ totals: [Int]) throws(Failure) -> [String: Double] {
        let lines = text.split(separator: "\n").map { $0.split(separator: " ") }.filter { $0.count == 2 }
        guard lines.count == totals.count, !lines.isEmpty else {
            throw Failure(
                reason: "callgrind counted \(totals.count) pieces of work, but the program printed \(lines.count)"
            )
        }
        var found: [String: Double] = [:]
        for (line, total) in zip(lines, totals) {
            if let calls = Double(line[1]), calls > 0 { found[String(line[0])] = Double(total) / calls }
        }
        return found
    }

    /// The count of a dump, from its line `totals: N`.
    static func total(in dump: String) -> Int? {
        for line in dump.split(separator: "\n").reversed() where line.hasPrefix("totals: ") {
            return Int(line.dropFirst("totals: ".count).prefix { $0.isNumber })
        }
        return nil
    }
}
