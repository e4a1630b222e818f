// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Foundation

/// Python's caches, asked in a process of their own, turn by turn.
final class PythonPeers {
    static let names = ["hishel", "requests-cache"]

    /// What is measured, by name.
    private(set) var versions: [String: String] = [:]
    private let process = Process()
    private let (questions, answers) = (Pipe(), Pipe())
    private var unread = Data()

    /// Starts the process.
    ///
    /// - Parameters:
    ///   - directory: where their files go.
    ///   - seconds: how long installing them may take.
    /// - Throws: ``PeerInstallation/Failure``.
    init(directory: String, installingWithin seconds: Double) throws {
        let installation = try PeerInstallation(within: seconds)
        process.executableURL = installation.python
        process.arguments = [installation.script.path, directory]
        process.standardInput = questions
        process.standardOutput = answers
        // A process that has ended takes no more questions; that is an error of the write, not the end of this one.
        signal(SIGPIPE, SIG_IGN)
        try process.run()
    }

    /// Fills the caches of a tier.
    func fill(_ tier: HitCase.Tier, length: Int, entries: Int) throws {
        let answer = try ask(.fill(tier: tier.rawValue, length: length, entries: entries))
        versions = answer.versions ?? versions
    }

    /// Asks one of them for so many nanoseconds.
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
            throw PeerInstallation.Failure(reason: "peers.py did not say what a turn took")
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
            throw PeerInstallation.Failure(reason: "peers.py ended too soon; what it said stands above")
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
                throw PeerInstallation.Failure(reason: "peers.py ended too soon; what it said stands above")
            }
            unread += more
        }
    }
}
