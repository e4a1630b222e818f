// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Bounds how many exchanges with one origin are in flight: a transport around another one.
///
/// An attempt that finds no place free waits in line, first come, first served, until one is free, its deadline passes or its
/// task is cancelled, either promptly. Where the deadline passes, and at once where the line is full, it fails with
/// ``ServiceError`` `.tooManyInFlight`, progress `.notSent`: that is no failure of the server, and no circuit or budget
/// counts it as one. A place is held until the response's body was read to its
/// end, failed, or was dropped, since the connection is busy until then; a body that is kept but never read keeps its place.
/// 1,024 origins are remembered; those that are idle and longest unused go first. Safe to use from any number of tasks.
public final class ConcurrencyLimit: Transport {
    private let transport: any Transport
    private let maxInFlight: Int
    private let maxWaiting: Int
    private let origins: OriginTable<WaitingLine>

    /// A limit around a transport.
    ///
    /// - Parameters:
    ///   - transport: sends what the limit lets through.
    ///   - maxInFlight: the most exchanges in flight with one origin; 100 by default, at least 1.
    ///   - maxWaiting: the most attempts in line for one origin; 1,000 by default, 0: none waits.
    public init(_ transport: any Transport, maxInFlight: Int = 100, maxWaiting: Int = 1000) {
        let (places, length) = (max(1, maxInFlight), max(0, maxWaiting))
        self.transport = transport
        self.maxInFlight = places
        self.maxWaiting = length
        origins = OriginTable(capacity: 1024, isIdle: { line, _ in line.isIdle }) { _ in
            WaitingLine(places: places, length: length)
        }
    }

    public var enforcesDeadline: Bool { transport.enforcesDeadline }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        transport.implicitFields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let origin = OriginText(request)
        let line = line(of: origin, now: context.clock.now)
        switch line.enter() {
        case .taken: break
        case .full: throw refusal(of: origin)
        case .waits(let ticket): try await wait(in: line, ticket, origin, context)
        }
        let place = HeldPlace(line)
        do {
            try Task.checkCancellation()
            var response = try await transport.send(request, body: body, context: context)
            if let source = response.body.source {
                response.body = ResponseBody(PlacedBody(source, place), length: response.body.length)
            } else {
                place.leave()
            }
            return response
        } catch {
            place.leave()
            throw error
        }
    }

    /// Those who have a place at an origin, and who wait for one.
    func line(of origin: OriginText, now: MonotonicInstant) -> WaitingLine {
        origins.cell(of: origin, now: now)
    }

    private func wait(
        in line: WaitingLine,
        _ ticket: WaitingLine.Ticket,
        _ origin: OriginText,
        _ context: CallContext
    ) async throws {
        guard let deadline = context.attemptDeadline else { return try await line.wait(ticket) }
        let clock = context.clock
        let late = ServiceError(
            .tooManyInFlight,
            "The wait for a place among the \(maxInFlight) exchanges with \(origin.text) was too long; allow more of them or more "
                + "time, and see that response bodies are read or dropped.",
            progress: .notSent
        )
        let timer = context.background.start {
            do {
                try await clock.sleep(until: deadline)
                line.abandon(ticket, late)
            } catch {
                // The timer was cancelled: the wait is over.
            }
        }
        defer { timer.cancel() }
        do {
            try await line.wait(ticket)
        } catch  where error.isCancellation && context.isPastDeadline {
            // Whoever watches the same deadline from outside may cancel before the timer here fires.
            throw late
        }
    }

    private func refusal(of origin: OriginText) -> ServiceError {
        ServiceError(
            .tooManyInFlight,
            "\(maxInFlight) exchanges with \(origin.text) are in flight and \(maxWaiting) wait in line; send less at a time, or "
                + "raise the limit if the server can bear it.",
            progress: .notSent
        )
    }
}
