// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// A Python environment of the benchmark's own with the peers in it, made when it is first needed.
struct PeerInstallation {
    /// Why there is none: a sentence without its full stop.
    struct Failure: Error {
        let reason: String
    }

    /// Where Python's caches and the script that asks them are: beside this package's sources.
    static let scripts = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Peers")

    /// The environment, in a folder that the package ignores.
    static let environment = scripts.deletingLastPathComponent().appendingPathComponent(".build-peers")

    let python: URL
    let script: URL

    /// Makes the environment, or finds it made by the same requirements.
    ///
    /// - Parameter seconds: how long that may take.
    init(within seconds: Double) throws {
        let files = FileManager.default
        let requirements = Self.scripts.appendingPathComponent("requirements.txt")
        script = Self.scripts.appendingPathComponent("peers.py")
        python = Self.environment.appendingPathComponent("bin/python3")
        guard let wanted = files.contents(atPath: requirements.path) else {
            throw Failure(reason: "Benchmarks/Peers is not where this program was built from; build it again")
        }
        // Written last, so that a half-made environment is made anew.
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
            throw Failure(reason: "\(name) cannot be started; install Python 3.10 or later with venv and pip")
        case .late:
            throw Failure(
                reason:
                    "\(name) was not done within \(Int(max(0, seconds))) seconds; --install-seconds gives it longer, once"
            )
        case .failed(let words):
            throw Failure(reason: "\(name) failed: \(words)")
        }
    }
}
