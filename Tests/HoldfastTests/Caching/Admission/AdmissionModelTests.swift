// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import Testing

/// The rules of the model on courses written by hand: each forbidden one is seen, and each permitted one beside it is not.
@Suite("The model of RFC 9111 detects each known fault")
struct AdmissionModelTests {
    /// A course of events, in the order in which its functions are called.
    struct Course: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var setting = AdmissionSetting(mode: .shared, store: .memory, identity: .cookie)
        var log = AdmissionLog()
        private var order = 0
        private var seconds: Int64 = 1_700_000_000

        init(_ name: String, _ build: (inout Course) -> Void) {
            testDescription = name
            build(&self)
        }

        private mutating func moment() -> AdmissionMoment {
            order += 1
            return AdmissionMoment(order: order, time: Timestamp(secondsSinceEpoch: seconds))
        }

        mutating func advance(_ count: Int64) { seconds += count }

        /// A call begins; the number is its own.
        @discardableResult
        mutating func call(_ user: AdmissionUser = .guest, _ change: (inout PlannedCall) -> Void = { _ in }) -> Int {
            var plan = PlannedCall(number: log.calls.count + 1, user: user)
            change(&plan)
            var fields: HeaderFields = [:]
            if plan.condition == .ifNoneMatch { fields["If-None-Match"] = "\"v1\"" }
            log.calls.append(AdmissionCall(plan: plan, requestFields: fields, startedAt: moment()))
            return plan.number
        }

        /// An exchange of a call begins.
        @discardableResult
        mutating func send(_ call: Int, path: String = "/a") -> Int {
            let plan = log.calls[call - 1].plan
            log.exchanges.append(
                AdmissionExchange(
                    number: log.exchanges.count + 1,
                    call: plan,
                    path: path,
                    sentFields: [:],
                    hasContent: plan.content != nil || plan.isUnsafe,
                    sentAt: moment()
                )
            )
            return log.exchanges.count
        }

        mutating func receive(
            _ exchange: Int,
            _ status: Int = 200,
            _ fields: HeaderFields = [:],
            cells: Range<Int>? = nil,
            isCompressed: Bool = false
        ) {
            let time = moment()
            var marked = fields
            marked["X-Stamp"] = "\(exchange)"
            marked["Date"] = HTTPDate(log.exchanges[exchange - 1].sentAt.time).description
            if let control = fields["Cache-Control"] { marked["Cache-Control"] = control + ", stamp=\(exchange)" }
            log.exchanges[exchange - 1].endedAt = time
            log.exchanges[exchange - 1].answer = AdmissionExchange.Answer(
                status: status,
                fields: marked,
                cells: cells ?? (status == 304 ? 0..<0 : 0..<3),
                length: 3,
                representation: .init(path: "/a", version: 1, isCompressed: isCompressed)
            )
        }

        /// The call is answered with these cells and the fields of these exchanges, later ones over earlier ones.
        mutating func answer(
            _ call: Int,
            _ source: String,
            status: Int = 200,
            fields: [Int],
            cells: [(exchange: Int, index: Int)]
        ) {
            log.calls[call - 1].status = status
            log.calls[call - 1].source = source
            for exchange in fields {
                let brought = log.exchanges[exchange - 1].answer?.fields ?? [:]
                log.calls[call - 1].fields = log.calls[call - 1].fields.merging(brought)
            }
            log.calls[call - 1].body = cells.map { AdmissionOrigin.cell(exchange: $0.exchange, $0.index) }.joined()
            log.calls[call - 1].endedAt = moment()
        }

        mutating func answer(_ call: Int, _ source: String, by exchange: Int, fields: [Int]? = nil) {
            answer(call, source, fields: fields ?? [exchange], cells: (0..<3).map { (exchange, $0) })
        }

        /// A call that is answered by its own exchange with a 200.
        @discardableResult
        mutating func load(
            _ user: AdmissionUser = .guest,
            _ fields: HeaderFields = ["Cache-Control": "max-age=60"],
            path: String = "/a",
            _ change: (inout PlannedCall) -> Void = { _ in }
        ) -> Int {
            let call = call(user, change)
            let exchange = send(call, path: path)
            receive(exchange, 200, fields)
            answer(call, "network(attempts: 1)", by: exchange)
            return exchange
        }

        /// A call that is answered from an exchange without being sent.
        mutating func hit(
            _ user: AdmissionUser = .guest,
            by exchange: Int,
            fields: [Int]? = nil,
            _ change: (inout PlannedCall) -> Void = { _ in }
        ) {
            let call = call(user, change)
            answer(call, "fresh", by: exchange, fields: fields)
        }

        /// A call that is answered from an exchange after a 304 of its own.
        @discardableResult
        mutating func revalidate(_ user: AdmissionUser = .guest, _ stored: Int, _ fields: HeaderFields) -> Int {
            let call = call(user)
            let exchange = send(call)
            receive(exchange, 304, fields)
            answer(call, "revalidated", by: stored, fields: [stored, exchange])
            return exchange
        }
    }

    typealias Kind = AdmissionViolation.Kind

    static let forbidden: [(Kind, Course)] = [
        (.leakedBody, Course("a cookie's own response to a guest") { $0.hit(by: $0.load(.alice)) }),
        (
            .leakedBody,
            Course("a private response in a shared cache") {
                $0.hit(.guest, by: $0.load(.guest, ["Cache-Control": "private, max-age=60"]))
            }
        ),
        (
            .leakedBody,
            Course("an authorized response that nothing releases, to the same user") {
                $0.setting.identity = .authorization
                $0.hit(.alice, by: $0.load(.alice))
            }
        ),
        (
            .leakedBody,
            Course("another principal's in private mode, public or not") {
                $0.setting.mode = .private
                $0.hit(.bob, by: $0.load(.alice, ["Cache-Control": "public, max-age=60"]))
            }
        ),
        (
            .leakedField,
            Course("the fields of a cookie's 304 to a guest") {
                let stored = $0.load(.guest, ["Cache-Control": "max-age=60", "ETag": "\"v1\""])
                let update = $0.revalidate(
                    .alice,
                    stored,
                    ["Cache-Control": "max-age=60", "Set-Cookie": "sid=alice.2"]
                )
                $0.hit(by: stored, fields: [stored, update])
            }
        ),
        (
            .leakedField,
            Course("a 304 without Cache-Control over an authorized response") {
                $0.setting.identity = .authorization
                let stored = $0.load(.guest)
                let update = $0.revalidate(.alice, stored, [:])
                $0.hit(by: stored, fields: [stored, update])
            }
        ),
        (
            .leakedField,
            Course("a Set-Cookie that a qualified private names") {
                $0.hit(
                    by: $0.load(
                        .guest,
                        ["Cache-Control": "max-age=60, private=\"set-cookie\"", "Set-Cookie": "sid=x.1"]
                    )
                )
            }
        ),
        (
            .noStoreReused,
            Course("a response with no-store") {
                $0.hit(by: $0.load(.guest, ["Cache-Control": "no-store, max-age=60"]))
            }
        ),
        (
            .noStoreReused,
            Course("the response to a request with no-store") {
                $0.hit(by: $0.load { $0.cacheControl = "no-store" })
            }
        ),
        (
            .noStoreReused,
            Course("the fields of a 304 with no-store") {
                let stored = $0.load()
                $0.hit(
                    by: stored,
                    fields: [stored, $0.revalidate(.guest, stored, ["Cache-Control": "max-age=60, no-store"])]
                )
            }
        ),
        (
            .unmatchedVary,
            Course("another language") {
                let stored = $0.load(.guest, ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]) {
                    $0.selecting = ["Accept-Language": "de"]
                }
                $0.hit(by: stored) { $0.selecting = ["Accept-Language": "en"] }
            }
        ),
        (
            .unmatchedVary,
            Course("a Vary that a 304 brought") {
                let stored = $0.load { $0.selecting = ["X-User": "alice"] }
                let call = $0.call { $0.selecting = ["X-User": "alice"] }
                let update = $0.send(call)
                $0.receive(update, 304, ["Vary": "X-User"])
                $0.answer(call, "revalidated", by: stored, fields: [stored, update])
                $0.hit(by: stored, fields: [stored, update]) { $0.selecting = ["X-User": "bob"] }
            }
        ),
        (
            .unmatchedVary,
            Course("a Vary of everything") {
                $0.hit(by: $0.load(.guest, ["Cache-Control": "max-age=60", "Vary": "*"]))
            }
        ),
        (
            .stale,
            Course("past its lifetime") {
                let stored = $0.load()
                $0.advance(62)
                $0.hit(by: stored)
            }
        ),
        (
            .stale,
            Course("past s-maxage in a shared cache") {
                let stored = $0.load(.guest, ["Cache-Control": "max-age=60, s-maxage=1"])
                $0.advance(5)
                $0.hit(by: stored)
            }
        ),
        (
            .stale,
            Course("no-cache without validation") {
                $0.hit(by: $0.load(.guest, ["Cache-Control": "no-cache, max-age=60"]))
            }
        ),
        (
            .stale,
            Course("old when it came") { $0.hit(by: $0.load(.guest, ["Cache-Control": "max-age=60", "Age": "100"])) }
        ),
        (
            .stale,
            Course("max-stale over must-revalidate") {
                let stored = $0.load(.guest, ["Cache-Control": "max-age=1, must-revalidate"])
                $0.advance(5)
                $0.hit(by: stored) { $0.cacheControl = "max-stale" }
            }
        ),
        (.notValidated, Course("no-cache in the request") { $0.hit(by: $0.load()) { $0.cacheControl = "no-cache" } }),
        (
            .joinedEarlier,
            Course("a revalidation joins an exchange that was sent before it") {
                let first = $0.call()
                let exchange = $0.send(first)
                let second = $0.call { $0.directive = .revalidate }
                $0.receive(exchange)
                $0.answer(second, "collapsed", by: exchange)
                $0.answer(first, "network(attempts: 1)", by: exchange)
            }
        ),
        (
            .invalidated,
            Course("stored before a POST") {
                let stored = $0.load()
                $0.load { $0.method = "POST" }
                $0.hit(by: stored)
            }
        ),
        (
            .invalidated,
            Course("under way while a POST was answered") {
                let reader = $0.call()
                let exchange = $0.send(reader)
                $0.load { $0.method = "POST" }
                $0.receive(exchange, 200, ["Cache-Control": "max-age=60"])
                $0.answer(reader, "network(attempts: 1)", by: exchange)
                $0.hit(by: exchange)
            }
        ),
        (
            .olderOverNewer,
            Course("what was sent first lands last") {
                let first = $0.call()
                let exchange = $0.send(first)
                $0.load()
                $0.receive(exchange, 200, ["Cache-Control": "max-age=60"])
                $0.answer(first, "network(attempts: 1)", by: exchange)
                $0.hit(by: exchange)
            }
        ),
        (
            .olderOverNewer,
            Course("a HEAD from before rewrites what came after it") {
                let head = $0.call { $0.method = "HEAD" }
                let exchange = $0.send(head)
                let stored = $0.load()
                $0.receive(exchange, 200, [:])
                $0.answer(head, "network(attempts: 1)", fields: [exchange], cells: [])
                $0.hit(by: stored, fields: [stored, exchange])
            }
        ),
        (
            .mixedParts,
            Course("parts with weak tags") {
                let first = $0.load(.guest, ["ETag": "W/\"v1\""])
                let call = $0.call()
                let rest = $0.send(call)
                $0.receive(rest, 206, ["ETag": "W/\"v1\""], cells: 1..<3)
                $0.answer(
                    call,
                    "network(attempts: 1)",
                    fields: [first, rest],
                    cells: [(first, 0), (rest, 1), (rest, 2)]
                )
            }
        ),
        (
            .mixedParts,
            Course("parts in two codings") {
                let first = $0.load(.guest, ["Last-Modified": "Tue, 14 Nov 2000 22:13:20 GMT"])
                let call = $0.call()
                let rest = $0.send(call)
                let fields: HeaderFields = [
                    "Last-Modified": "Tue, 14 Nov 2000 22:13:20 GMT", "Content-Encoding": "gzip",
                ]
                $0.receive(rest, 206, fields, cells: 1..<3, isCompressed: true)
                $0.answer(
                    call,
                    "network(attempts: 1)",
                    fields: [first, rest],
                    cells: [(first, 0), (rest, 1), (rest, 2)]
                )
            }
        ),
        (
            .incomplete,
            Course("a part for the whole") {
                let first = $0.call { $0.range = "0-1" }
                let part = $0.send(first)
                $0.receive(part, 206, ["Cache-Control": "max-age=60", "ETag": "\"v1\""], cells: 0..<2)
                let call = $0.call()
                $0.answer(call, "fresh", fields: [part], cells: [(part, 0), (part, 1)])
            }
        ),
        (
            .wrongDigest,
            Course("a 304's Content-Digest over a stored body") {
                let stored = $0.load()
                $0.revalidate(.guest, stored, ["Content-Digest": "sha-256=:2:"])
            }
        ),
        (
            .wrongDigest,
            Course("the Repr-Digest of another coding") {
                let stored = $0.load()
                let call = $0.call()
                let update = $0.send(call)
                $0.receive(update, 304, ["Repr-Digest": "sha-256=:2:"], isCompressed: true)
                $0.answer(call, "revalidated", by: stored, fields: [stored, update])
            }
        ),
        (.wrongKey, Course("a GET with content for one without") { $0.hit(by: $0.load { $0.content = "q=1" }) }),
        (.wrongKey, Course("another path") { $0.hit(by: $0.load(path: "/x/%2e%2e/a")) }),
        (.wrongKey, Course("the response to a POST") { $0.hit(by: $0.load { $0.method = "POST" }) }),
        (
            .wrongSelection,
            Course("a 304 about another tag") {
                let stored = $0.load(.guest, ["Cache-Control": "max-age=60", "ETag": "\"v1\""])
                $0.revalidate(.guest, stored, ["ETag": "\"v2\""])
            }
        ),
        (
            .wrongCondition,
            Course("a 304 to nobody's condition") {
                let call = $0.call()
                let exchange = $0.send(call)
                $0.receive(exchange, 304, [:])
                $0.answer(call, "network(attempts: 1)", status: 304, fields: [exchange], cells: [])
            }
        ),
        (.sentAlthoughOnlyIfCached, Course("only-if-cached") { $0.load { $0.cacheControl = "only-if-cached" } }),
        (.stuck, Course("no end") { $0.call() }),
    ]

    @Test("Forbidden", arguments: forbidden.indices)
    func forbids(_ index: Int) {
        let (kind, course) = Self.forbidden[index]
        let found = AdmissionModel(setting: course.setting, log: course.log).violations()
        #expect(found.contains { $0.kind == kind }, "\(course.testDescription): \(found)")
    }

    static let permitted: [Course] = [
        Course("a fresh hit") { $0.hit(.alice, by: $0.load()) },
        Course("a released response") { $0.hit(.bob, by: $0.load(.alice, ["Cache-Control": "public, max-age=60"])) },
        Course("an authorized response that must be revalidated (RFC 9111 §3.5)") {
            $0.setting.identity = .authorization
            $0.hit(.bob, by: $0.load(.alice, ["Cache-Control": "max-age=60, must-revalidate"]))
        },
        Course("a guest's for a cookie in private mode") {
            $0.setting.mode = .private
            $0.hit(.bob, by: $0.load(.guest))
        },
        Course("the fields of one's own 304, for oneself") {
            let stored = $0.load(.guest, ["Cache-Control": "max-age=60", "ETag": "\"v1\""])
            $0.revalidate(.alice, stored, ["Cache-Control": "private, max-age=60", "Set-Cookie": "sid=alice.2"])
            $0.hit(by: stored)
        },
        Course("a 304 makes it fresh again, also after a POST") {
            let stored = $0.load(.guest, ["Cache-Control": "max-age=60", "ETag": "\"v1\""])
            $0.load { $0.method = "POST" }
            $0.advance(100)
            let update = $0.revalidate(.guest, stored, ["Cache-Control": "max-age=60", "ETag": "\"v1\""])
            $0.advance(50)
            $0.hit(by: stored, fields: [stored, update])
        },
        Course("the same language") {
            let stored = $0.load(.guest, ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]) {
                $0.selecting = ["Accept-Language": "de"]
            }
            $0.hit(by: stored) { $0.selecting = ["Accept-Language": "de", "X-User": "bob"] }
        },
        Course("stale within max-stale and stale-while-revalidate") {
            let stored = $0.load(.guest, ["Cache-Control": "max-age=10, stale-while-revalidate=20"])
            $0.advance(15)
            $0.hit(by: stored)
            $0.advance(60)
            $0.hit(by: stored) { $0.cacheControl = "max-stale" }
        },
        Course("equal calls share an exchange") {
            let first = $0.call()
            let exchange = $0.send(first)
            let second = $0.call()
            $0.receive(exchange)
            $0.answer(second, "collapsed", by: exchange)
            $0.answer(first, "network(attempts: 1)", by: exchange)
        },
        Course("parts with one strong tag") {
            let first = $0.load(.guest, ["ETag": "\"v1\""])
            let call = $0.call()
            let rest = $0.send(call)
            $0.receive(rest, 206, ["ETag": "\"v1\""], cells: 1..<3)
            $0.answer(call, "network(attempts: 1)", fields: [first, rest], cells: [(first, 0), (rest, 1), (rest, 2)])
        },
        Course("another user's released response confirms a condition") {
            let stored = $0.load(.alice, ["Cache-Control": "s-maxage=60", "ETag": "\"v1\""])
            let call = $0.call { $0.condition = .ifNoneMatch }
            $0.answer(call, "fresh", status: 304, fields: [stored], cells: [])
            $0.log.calls[call - 1].fields.removeAll("X-Stamp")
        },
        Course("a 304 for a condition of the caller's that holds") {
            let stored = $0.load(.guest, ["Cache-Control": "max-age=60", "ETag": "\"v1\""])
            let call = $0.call { $0.condition = .ifNoneMatch }
            $0.answer(call, "fresh", status: 304, fields: [stored], cells: [])
        },
    ]

    @Test("Permitted", arguments: permitted.indices)
    func permits(_ index: Int) {
        let course = Self.permitted[index]
        let found = AdmissionModel(setting: course.setting, log: course.log).violations()
        #expect(found.isEmpty, "\(course.testDescription)")
    }
}
