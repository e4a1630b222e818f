// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Foundation

/// Python's caches, called in a separate process, turn by turn.
final class PythonPeers {
    static let names = ["hishel", "requests-cache"]

    /// The versions of the measured subjects, by name.
    private(set) var versions: [String: String] = [:]
    private let process = Process()
    private let (questions, answers) = (Pipe(), Pipe())
    private var unread = Data()

    /// Starts the process.
    ///
    /// - Parameters:
    ///   - directory: The directory for their files.
    ///   - seconds: The time limit for installing them.
    /// - Throws: ``PeerInstallation/Failure``.
    init(directory: String, installingWithin seconds: Double) throws {
        let installation = try PeerInstallation(within: seconds)
        process.executableURL = installation.python
        process.arguments = [installation.script.path, directory]
        process.standardInput = questions
        process.standardOutput = answers
        // An ended process accepts no more commands; the write must then throw and not end this process.
        signal(SIGPIPE, SIG_IGN)
        try process.run()
    }

    /// Fills the caches of a tier.
    func fill(_ tier: HitCase.Tier, length: Int, entries: Int) throws {
        let answer = try ask(.fill(tier: tier.rawValue, length: length, entries: entries))
        versions = answer.versions ?? versions
    }

    /// Runs a turn of one subject for this many nanoseconds.
    func turn(_ subject: String, _ hitCase: HitCase, nanoseconds: UInt64, round: Int) throws -> Spent {
        let question = PeerQuestion.turn(
            subject: subject,
            tier: hitCase.tier.rawValue,
            length: hitCase.length,
            seconds: Double(nanoseconds) / 1e9,
            seed: round
        )
        let answer = try ask(question)
        guard let seconds = answer.seconds, let hits = answer.hits, let wrong = answer.wrong, hits > 0 else {
            throw PeerInstallation.Failure(reason: "peers.py did not report the result of a turn")
        }
        return Spent(nanoseconds: seconds * 1e9, calls: hits, right: hits - wrong)
    }

    /// Ends the process.
    func close() {
        try? questions.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    private func ask(_ question: PeerQuestion) throws -> PeerAnswer {
        do {
            try questions.fileHandleForWriting.write(contentsOf: Data((question.line + "\n").utf8))
        } catch {
            throw PeerInstallation.Failure(reason: "peers.py ended too early; see its output above")
        }
        let answer = PeerAnswer(line: try line())
        if let error = answer.error { throw PeerInstallation.Failure(reason: "peers.py: \(error)") }
        return answer
    }

    private func line() throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = unread[unread.startIndex..<end]
                unread = Data(unread[(end + 1)...])
                return String(bytes: line, encoding: .utf8) ?? ""
            }
            let more = answers.fileHandleForReading.availableData
            guard !more.isEmpty else {
                throw PeerInstallation.Failure(reason: "peers.py ended too early; see its output above")
            }
            unread += more
        }
    }
}
