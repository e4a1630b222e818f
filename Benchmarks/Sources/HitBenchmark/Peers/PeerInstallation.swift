// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// The benchmark's own Python environment with the peers, created on first use.
struct PeerInstallation {
    /// Why there is no environment: a sentence without its period.
    struct Failure: Error {
        let reason: String
    }

    /// The directory of the script that calls Python's caches, and of its requirements: beside this package's sources.
    static let scripts = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Peers")

    /// The environment, in a directory that the package ignores.
    static let environment = scripts.deletingLastPathComponent().appendingPathComponent(".build-peers")

    let python: URL
    let script: URL

    /// Creates the environment, or reuses one with the same requirements.
    ///
    /// - Parameter seconds: the time limit.
    init(within seconds: Double) throws {
        let files = FileManager.default
        let requirements = Self.scripts.appendingPathComponent("requirements.txt")
        script = Self.scripts.appendingPathComponent("peers.py")
        python = Self.environment.appendingPathComponent("bin/python3")
        guard let wanted = files.contents(atPath: requirements.path) else {
            throw Failure(reason: "Benchmarks/Peers does not exist where this program was built; build it again")
        }
        // Written last, so that an incomplete environment is created again.
        let mark = Self.environment.appendingPathComponent("requirements.txt")
        if files.contents(atPath: mark.path) == wanted { return }
        let watch = Stopwatch()
        try? files.removeItem(at: mark)
        try Self.run(
            URL(fileURLWithPath: "/usr/bin/env"),
            ["python3", "-m", "venv", Self.environment.path],
            within: seconds,
            "python3 -m venv"
        )
        let words = ["-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "10", "-r", requirements.path]
        try Self.run(python, words, within: seconds - watch.seconds, "pip install -r Benchmarks/Peers/requirements.txt")
        try wanted.write(to: mark)
    }

    private static func run(_ program: URL, _ words: [String], within seconds: Double, _ name: String) throws {
        switch TimedProcess.run(program, words, within: seconds) {
        case .done: return
        case .missing:
            throw Failure(reason: "cannot start \(name); install Python 3.10 or later with venv and pip")
        case .late:
            throw Failure(
                reason:
                    "\(name) did not finish within \(Int(max(0, seconds))) seconds; use a larger --install-seconds once"
            )
        case .failed(let words):
            throw Failure(reason: "\(name) failed: \(words)")
        }
    }
}
