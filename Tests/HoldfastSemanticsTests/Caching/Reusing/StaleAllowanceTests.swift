// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("When a stale response may be served (RFC 5861, RFC 9111 §4.2.4)")
struct StaleAllowanceTests {
    static let start = Timestamp(secondsSinceEpoch: 1_700_000_000)

    static func decide(
        _ response: String,
        _ request: String = "",
        age: Int64 = 20,
        directive: CacheDirective = .default,
        options: CacheOptions = CacheOptions(),
        status: StatusCode = .ok
    ) throws -> ReasonedReuseDecision {
        let target = try TargetURI("http://h.example/")
        let secret = [UInt8](repeating: 7, count: 16)
        let fields: HeaderFields = ["Cache-Control": response, "ETag": "\"a\""]
        let stored = StoredResponse(
            target: target,
            method: .get,
            nominated: try #require(NominatedFields(vary: fields, request: HeaderFields(), secret: secret)),
            head: ResponseHead(status: status, fields: fields),
            requestTime: start,
            responseTime: start,
            contentDecoded: false
        )
        let now = start.advanced(by: .seconds(age))
        return ReasonedReuseDecision(
            request: RequestHead(
                method: .get,
                target: target,
                fields: request.isEmpty ? HeaderFields() : ["Cache-Control": request]
            ),
            candidates: [stored],
            directive: directive,
            now: now,
            options: options,
            secret: secret
        )
    }

    static func allowance(_ reasoned: ReasonedReuseDecision) -> String {
        let allowance = reasoned.staleAllowance
        var letters = ""
        if allowance.whileRevalidating { letters += "R" }
        if allowance.onError { letters += "E" }
        if allowance.whenDisconnected { letters += "D" }
        return letters
    }

    @Test(
        "RETRY §3.6.1: a stale response served after a failure, where a closed gate counts as the 503 that closed it",
        arguments: [
            (.throttled, "max-age=10, stale-if-error=100", .staleIfError), (.throttled, "max-age=10", nil),
            (.connect, "max-age=10", .disconnected), (.connect, "max-age=10, must-revalidate", nil),
            (.throttled, "max-age=10, stale-if-error=100, must-revalidate", nil), (.certificate, "max-age=10", nil),
        ] as [(AttemptFailure.Kind, String, CacheReason?)]
    )
    func afterFailure(_ kind: AttemptFailure.Kind, _ response: String, _ expected: CacheReason?) throws {
        let allowance = try Self.decide(response, age: 20).staleAllowance
        let failure = AttemptFailure(kind: kind, progress: .notSent)
        #expect(allowance.reason(after: failure) == expected)
        let isForbidden = response.contains("must-revalidate")
        let impatient = kind == .throttled && expected == nil && !isForbidden ? .patience : expected
        #expect(allowance.reason(after: failure, isImpatient: true) == impatient)
    }

    static let all = "max-age=10, stale-while-revalidate=100, stale-if-error=100"

    @Test(
        "A directive that forbids overrides one that allows, in each mode (RFC 9111 §4.2.4)",
        arguments: [
            (all, "RED", "RED"), ("must-revalidate, " + all, "", ""), ("no-cache, " + all, "", ""),
            ("no-cache=\"a\", " + all, "RED", "RED"), ("proxy-revalidate, " + all, "RED", ""),
            ("s-maxage=10, " + all, "RED", ""), ("max-age=10", "D", "D"),
            ("max-age=10, stale-while-revalidate=100", "RD", "RD"), ("max-age=10, stale-if-error=100", "ED", "ED"),
        ]
    )
    func response(_ cacheControl: String, _ asPrivate: String, _ asShared: String) throws {
        #expect(Self.allowance(try Self.decide(cacheControl)) == asPrivate)
        #expect(Self.allowance(try Self.decide(cacheControl, options: .shared)) == asShared)
    }

    @Test(
        "What the request allows (RFC 9111 §5.2.1, RFC 5861 §4)",
        arguments: [
            ("no-cache", all, ""), ("max-age=0", all, ""), ("max-age=5", all, "ED"), ("min-fresh=1", all, "ED"),
            ("min-fresh=0", all, "RED"), ("stale-if-error=100", "max-age=10", "ED"),
            ("stale-if-error=9", "max-age=10", "D"), ("stale-if-error=10", "max-age=10", "ED"),
            ("stale-if-error=0", "max-age=10", "D"), ("stale-if-error=5", "max-age=10, stale-if-error=10", "ED"),
            ("stale-if-error=100", "max-age=10, must-revalidate", ""), ("max-stale=9", all, "ED"),
            ("max-stale=0", all, "ED"), ("max-stale=x", all, "RED"),
        ]
    )
    func request(_ request: String, _ response: String, _ expected: String) throws {
        #expect(Self.allowance(try Self.decide(response, request)) == expected)
    }

    @Test("A call that requires validation gets nothing stale")
    func directive() throws {
        #expect(Self.allowance(try Self.decide(Self.all, directive: .revalidate)) == "")
    }

    @Test(
        "RFC 5861 §3 and §4: the windows at their limits",
        arguments: [
            (Int64(10), "RED"), (11, "RED"), (60, "RED"), (61, "ED"), (70, "ED"), (71, "D"), (110, "D"), (111, ""),
        ]
    )
    func windows(_ age: Int64, _ expected: String) throws {
        var options = CacheOptions()
        options.staleWhenDisconnected = .seconds(100)
        let response = "max-age=10, stale-while-revalidate=50, stale-if-error=60"
        #expect(Self.allowance(try Self.decide(response, age: age, options: options)) == expected)
    }

    @Test("A window of zero, and options that allow less than the response")
    func noWindow() throws {
        var options = CacheOptions()
        options.staleWhenDisconnected = .zero
        #expect(Self.allowance(try Self.decide("max-age=10", options: options)) == "")
        #expect(
            Self.allowance(try Self.decide("max-age=10, stale-while-revalidate=0", age: 10, options: options)) == ""
        )
        // A fresh response that the request finds too old is no exception.
        #expect(Self.allowance(try Self.decide("max-age=10", "max-age=1", age: 5, options: options)) == "")
        // Leave for an error is leave for an origin that cannot be reached, and leave for a revalidation is not.
        #expect(Self.allowance(try Self.decide("max-age=10, stale-if-error=20", options: options)) == "ED")
        #expect(Self.allowance(try Self.decide("max-age=10, stale-while-revalidate=20", options: options)) == "R")
        options.staleIfError = .seconds(20)
        options.staleWhileRevalidate = .seconds(20)
        #expect(Self.allowance(try Self.decide("max-age=10", options: options)) == "RED")
        #expect(
            Self.allowance(
                try Self.decide("max-age=10, stale-while-revalidate=0, stale-if-error=0", options: options)
            ) == ""
        )
    }

    @Test(
        "A stored error of the origin replaces no failure, whether the origin answers or not",
        arguments: [(200, "ED"), (404, "ED"), (500, ""), (503, "")]
    )
    func storedError(status: Int, expected: String) throws {
        let decided = try Self.decide("max-age=10, stale-if-error=100", status: StatusCode(status))
        #expect(Self.allowance(decided) == expected)
    }

    @Test(
        "Extreme numbers never trap",
        arguments: ["99999999999999999999", "9223372036854775807", "2147483648", "-1", "x", ""]
    )
    func overflow(_ number: String) throws {
        let response = "max-age=\(number), stale-while-revalidate=\(number), stale-if-error=\(number)"
        for age in [0, 1, 1 << 40, Int64.max / 2000] as [Int64] {
            var options = CacheOptions()
            options.staleIfError = .seconds(Int64.max)
            options.staleWhenDisconnected = .seconds(Int64.min)
            _ = try Self.decide(response, "stale-if-error=\(number), max-age=\(number)", age: age, options: options)
        }
    }

    @Test("RFC 5861 §4: which statuses are origin errors")
    func originErrors() {
        let errors = (100..<600).filter { StatusCode(rawValue: $0).isOriginError }
        #expect(errors == [500, 502, 503, 504])
    }

    @Test(
        "Which failures mean that the origin is unreachable",
        arguments: [
            (AttemptFailure.Kind.resolve, true), (.connect, true), (.timeout, true), (.tls, true),
            (.connectionLost, true), (.protocolError, true), (.offline, true), (.other, true), (.certificate, false),
            (.badRequest, false), (.tooLarge, false), (.cancelled, false),
        ]
    )
    func disconnection(_ kind: AttemptFailure.Kind, _ expected: Bool) {
        for progress in [TransportProgress.notSent, .headSent, .bodySent] {
            #expect(AttemptFailure(kind: kind, progress: progress).isDisconnection == expected)
        }
        for progress in [TransportProgress.headReceived, .bytesReceived] {
            #expect(!AttemptFailure(kind: kind, progress: progress).isDisconnection)
        }
    }

    @Test(
        "RFC 9111 §4.4: an unsafe request that may have been applied invalidates, one that cannot have been does not",
        arguments: ["PUT", "POST", "DELETE", "PATCH", "GET", "HEAD"],
        [TransportProgress.notSent, .headSent, .bodySent, .headReceived]
    )
    func ambiguous(_ method: String, _ progress: TransportProgress) throws {
        let head = RequestHead(method: RequestMethod(rawValue: method), target: try TargetURI("http://h.example/a"))
        let failure = AttemptFailure(kind: .connectionLost, progress: progress)
        let isInvalid = method != "GET" && method != "HEAD" && progress != .notSent
        #expect(
            Invalidation.targets(request: head, failure: failure, wasSent: true) == (isInvalid ? [head.target] : [])
        )
        #expect(Invalidation.targets(request: head, failure: failure, wasSent: false).isEmpty)
    }
}
