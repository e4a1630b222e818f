// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// A point in the course of a run: the time of day, and the place among all events.
struct AdmissionMoment: Sendable, Comparable {
    let order: Int
    let time: Timestamp

    static func < (left: Self, right: Self) -> Bool { left.order < right.order }
    static func == (left: Self, right: Self) -> Bool { left.order == right.order }
}

/// One request that reached the origin, and what came of it.
struct AdmissionExchange: Sendable {
    /// The origin's answer.
    struct Answer: Sendable {
        var status: Int
        var fields: HeaderFields
        /// Which cells of the representation the body has; empty for none.
        var cells: Range<Int>
        /// How many cells the whole representation has.
        var length: Int
        var representation: Representation
        var isBroken = false

        /// The cells that the message was to have.
        var content: Range<Int> { isBroken ? 0..<length : cells }
    }

    /// What has the same bytes.
    struct Representation: Sendable, Hashable {
        var path: String
        var version: Int
        var isCompressed: Bool
    }

    let number: Int
    /// The number of the call that it was sent for.
    let call: PlannedCall
    /// The path as it was sent.
    let path: String
    let sentFields: HeaderFields
    let hasContent: Bool
    let sentAt: AdmissionMoment
    /// When the response came, or the connection was lost.
    var endedAt: AdmissionMoment?
    /// Nil where the connection was lost, or nothing came yet.
    var answer: Answer?

    var user: AdmissionUser { call.user }
}

/// One call, and what it was answered.
struct AdmissionCall: Sendable {
    let plan: PlannedCall
    /// The fields of the request as the caller made it.
    let requestFields: HeaderFields
    let startedAt: AdmissionMoment
    var endedAt: AdmissionMoment?
    var status: Int?
    var fields = HeaderFields()
    var body = ""
    /// Whether the body ended with an error.
    var isBroken = false
    /// Where the pipeline says that the answer came from.
    var source: String = ""
    var error: String?
}

/// All that happened in a run.
struct AdmissionLog: Sendable {
    var exchanges: [AdmissionExchange] = []
    var calls: [AdmissionCall] = []

    /// What the calls were answered, for people.
    var description: String {
        var lines: [String] = []
        for exchange in exchanges {
            let answer = exchange.answer.map { "\($0.status) \(AdmissionLog.line($0.fields))" } ?? "nothing"
            lines.append(
                "  exchange \(exchange.number) for #\(exchange.call.number) (\(exchange.user.rawValue), at \(exchange.sentAt.order)"
                    + "..\(exchange.endedAt?.order ?? -1)) \(exchange.call.method) \(exchange.path) "
                    + AdmissionLog.line(exchange.sentFields) + "\n      -> \(answer)"
            )
        }
        for call in calls {
            let status = call.status.map { "\($0) \(AdmissionLog.line(call.fields))" } ?? call.error ?? "nothing"
            lines.append(
                "  answer to #\(call.plan.number) (at \(call.startedAt.order)..\(call.endedAt?.order ?? -1), \(call.source)): "
                    + "\(status) \(call.body)"
            )
        }
        return lines.joined(separator: "\n")
    }

    private static func line(_ fields: HeaderFields) -> String {
        "{" + fields.map { "\($0.name.rawName): \($0.value)" }.joined(separator: " | ") + "}"
    }
}
