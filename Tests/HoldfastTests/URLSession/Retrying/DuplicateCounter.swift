// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization

/// A server's books: how often it took each request to heart, by the number that the request bears, and how it treats them.
final class DuplicateCounter: Sendable {
    /// What becomes of the first copy of a request; later copies are answered well.
    enum Treatment: CaseIterable, Sendable {
        case good
        case appliedThenReset, appliedThenClosed, appliedThenHalfClosed, appliedThenHalfLine, appliedThenError
        case misdirected, tooEarly, throttled, timedOut

        /// Whether the server acts on the request before it answers.
        var applies: Bool {
            switch self {
            case .misdirected, .tooEarly, .throttled, .timedOut: false
            default: true
            }
        }

        /// The answer.
        var reply: LoopbackReply {
            switch self {
            case .good: return LoopbackReply(body: "done")
            case .appliedThenReset: return LoopbackReply(before: [.reset])
            case .appliedThenClosed: return LoopbackReply(before: [.close])
            case .appliedThenHalfClosed: return LoopbackReply(before: [.halfClose])
            case .appliedThenHalfLine: return LoopbackReply(before: [.raw("HTTP/1."), .close])
            case .appliedThenError: return LoopbackReply(502)
            case .misdirected: return LoopbackReply(421)
            case .tooEarly: return LoopbackReply(425)
            case .throttled: return LoopbackReply(503)
            case .timedOut:
                var reply = LoopbackReply(408)
                reply.closes = true
                return reply
            }
        }
    }

    private let arrivals = Mutex<[Int: (copies: Int, applied: Int)]>([:])
    private let spoiled = Atomic(0)
    private let treatment: @Sendable (_ number: Int) -> Treatment

    init(_ treatment: @escaping @Sendable (_ number: Int) -> Treatment) {
        self.treatment = treatment
    }

    /// The field that numbers a request.
    static let field = "X-Request-Number"

    /// Takes note of a request and answers it.
    func answer(_ request: LoopbackRequest) -> LoopbackReply {
        guard let number = request.values(of: DuplicateCounter.field).first.flatMap({ Int($0) }) else {
            return LoopbackReply(400)
        }
        if !request.body.isEmpty, request.text != DuplicateCounter.content(number) {
            spoiled.add(1, ordering: .relaxed)
        }
        let chosen = treatment(number)
        return arrivals.withLock { arrivals in
            var counted = arrivals[number] ?? (0, 0)
            counted.copies += 1
            let applied = counted.copies == 1 ? chosen : .good
            if applied.applies { counted.applied += 1 }
            arrivals[number] = counted
            return applied.reply
        }
    }

    /// The content that a request has, if any.
    static func content(_ number: Int) -> String { "content of \(number)" }

    /// How many requests had another content than they should.
    var spoiledCount: Int { spoiled.load(ordering: .relaxed) }

    /// How often the request with a number was acted on.
    func applied(_ number: Int) -> Int {
        arrivals.withLock { $0[number]?.applied ?? 0 }
    }
}
