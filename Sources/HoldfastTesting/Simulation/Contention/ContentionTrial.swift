// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// One trial of a ``ContentionStudy``: messages between clients and the row they fight for, in the order of their arrival.
struct ContentionTrial {
    /// A message on its way, and to whom: the client's number, with the version where one is carried.
    private enum Message {
        case read(Int)
        case version(Int, Int)
        case write(Int, Int)
        case refusal(Int)
        case success
    }

    private struct Client {
        var failures = 0
        var history = BackoffState()
    }

    private let study: ContentionStudy
    private var numbers: SimulationNumbers
    private var generator: SeededGenerator
    private var clients: [Client]
    private var messages = EventQueue<Message>()
    private var version = 0
    private var calls = 0

    init(_ study: ContentionStudy, seed: UInt64) {
        self.study = study
        numbers = SimulationNumbers(seed: seed)
        generator = SeededGenerator(seed: numbers.seed())
        clients = Array(repeating: Client(), count: study.clients)
    }

    /// Runs until all clients have written.
    mutating func run() -> (calls: Int, time: Duration) {
        for client in clients.indices { send(.read(client), from: .zero) }
        var end = Duration.zero
        while let (time, message) = messages.removeNext() {
            end = time
            switch message {
            case .read(let client):
                send(.version(client, version), from: time)
            case .version(let client, let seen):
                send(.write(client, seen), from: time)
            case .write(let client, let seen):
                calls += 1
                if seen == version {
                    version += 1
                    send(.success, from: time)
                } else {
                    send(.refusal(client), from: time)
                }
            case .refusal(let client):
                send(.read(client), from: time + wait(client))
            case .success:
                break
            }
        }
        return (calls, end)
    }

    private mutating func wait(_ client: Int) -> Duration {
        defer { clients[client].failures += 1 }
        return study.backoff.delay(
            retry: clients[client].failures,
            using: &generator,
            state: &clients[client].history
        )
    }

    private mutating func send(_ message: Message, from time: Duration) {
        let delay = numbers.normal(
            mean: study.networkDelay.doubleSeconds,
            deviation: study.networkDeviation.doubleSeconds
        )
        messages.add(message, at: time + Duration(boundedSeconds: abs(delay)))
    }
}
