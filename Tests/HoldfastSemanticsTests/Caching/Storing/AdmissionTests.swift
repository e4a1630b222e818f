// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

/// What a response does to a cache, by its kind, the mode, whose it is and its fields.
@Suite struct AdmissionTests {
    // MARK: Rows

    enum Requester: Sendable, CaseIterable {
        case guest
        /// The partition is told by a Cookie, an Authorization, or by the call alone.
        case cookie, authorization, principal

        var partition: String { self == .guest ? "" : "alice" }

        var fields: HeaderFields {
            switch self {
            case .guest, .principal: [:]
            case .cookie: ["Cookie": "sid=ALICE"]
            case .authorization: ["Authorization": "Bearer ALICE"]
            }
        }
    }

    enum News: Sendable, CaseIterable {
        /// A 304, a HEAD, and a 206 of which all bytes are stored already.
        case notModified, head, part
    }

    enum Outcome: Sendable, Hashable, CustomStringConvertible {
        case shared, own, freshen, remove
        case pass(CacheReason)

        var description: String {
            switch self {
            case .shared: "stored for all"
            case .own: "stored for the requester"
            case .freshen: "freshened"
            case .remove: "removed"
            case .pass(let reason): "passed: \(reason)"
            }
        }

        init(_ admission: Admission) {
            self =
                switch admission.action {
                case .store(_, scope: .shared): .shared
                case .store(_, scope: .principal): .own
                case .freshen: .freshen
                case .remove: .remove
                case .pass: .pass(admission.reason ?? .notStored)
                }
        }
    }

    /// A complete response or a part, and for whom it is stored in the two modes.
    struct Entry: Sendable, CustomTestStringConvertible {
        var clause: String
        var requester: Requester = .guest
        var fields: HeaderFields
        var shared: Outcome
        var own: Outcome = .own

        var testDescription: String { "\(clause): \(requester), \(fields)" }
    }

    /// News of a stored response: what it does where that is everyone's, in shared mode, and where it is the requester's own, in
    /// private mode.
    struct Update: Sendable, CustomTestStringConvertible {
        var clause: String
        var requester: Requester = .guest
        var stored: HeaderFields = ["Cache-Control": "max-age=60"]
        var fields: HeaderFields
        var shared: Outcome
        var own: Outcome = .freshen
        /// What a HEAD does where that is another thing: a HEAD that may not be stored says nothing at all.
        var head: (shared: Outcome, own: Outcome)?

        var testDescription: String { "\(clause): \(requester), \(stored) by \(fields)" }

        func expected(_ mode: CacheOptions.Mode, by news: News) -> Outcome {
            let (shared, own) = news == .head ? head ?? (shared, own) : (shared, own)
            return mode == .shared ? shared : own
        }
    }

    private static let tag: HeaderFields = ["ETag": "\"a\""]

    private static func exchange(
        _ requester: Requester = .guest,
        method: RequestMethod = .get,
        more: HeaderFields = [:],
        sentAt seconds: Int64 = 20
    ) throws -> Admission.Exchange {
        let request = RequestHead(method: method, target: try target(), fields: requester.fields.merging(more))
        return Admission.Exchange(
            lookedUp: request,
            sent: request,
            partition: requester.partition,
            sentPartition: requester.partition,
            requestTime: .noon.plus(seconds),
            responseTime: .noon.plus(30)
        )
    }

    private static func options(_ mode: CacheOptions.Mode) -> CacheOptions { mode == .shared ? .shared : .private }

    private static func admission(
        of response: ResponseHead,
        as kind: Admission.Kind,
        in exchange: Admission.Exchange,
        mode: CacheOptions.Mode
    ) -> Admission {
        Admission(of: response, as: kind, in: exchange, options: options(mode), secret: [])
    }

    private static func part(_ fields: HeaderFields, _ range: String = "0-4/10", coding: String? = nil) -> ResponseHead
    {
        var head = ResponseHead(status: .partialContent, fields: tag.merging(fields))
        head.fields[.contentRange] = "bytes \(range)"
        head.fields[.contentEncoding] = coding
        return head
    }

    private static func received(_ head: ResponseHead) throws -> ReceivedPart {
        let request = RequestHead(method: .get, target: try target(), fields: ["Range": "bytes=0-9"])
        return try #require(ReceivedPart(head, to: request, receivedAt: .noon.plus(30), contentDecoded: false))
    }

    /// A part of bytes 0 to 4 as it joins a stored response.
    private static func joining(
        _ head: ResponseHead,
        _ existing: Admission.Existing,
        ranges: [Range<Int64>],
        in exchange: Admission.Exchange,
        mode: CacheOptions.Mode
    ) throws -> Admission.Kind {
        let received = try received(head)
        let ranges = try #require(StoredRanges(intervals: ranges, completeLength: 10))
        let combination = PartCombination(
            of: received,
            head: head,
            with: existing.stored,
            ranges: ranges,
            asked: nil,
            requestTime: exchange.requestTime,
            responseTime: exchange.responseTime,
            mode: mode
        )
        return .joining(try #require(combination), existing)
    }

    /// A stored response with a strong tag, of ten bytes.
    private static func known(
        _ fields: HeaderFields = ["Cache-Control": "max-age=60"],
        nominating names: HeaderFields = [:],
        of request: HeaderFields = [:],
        ranges: StoredRanges? = nil
    ) throws -> StoredResponse {
        var response = StoredResponse(
            target: try target(),
            nominated: try #require(NominatedFields(vary: names, request: request, secret: [])),
            head: ResponseHead(status: .ok, fields: tag.merging(fields).merging(names)),
            requestTime: .noon,
            responseTime: .noon
        )
        response.ranges = ranges
        return response
    }

    /// What news of a stored response does.
    private static func admission(
        of fields: HeaderFields,
        as news: News,
        about stored: StoredResponse,
        in partition: String,
        to requester: Requester,
        mode: CacheOptions.Mode,
        more: HeaderFields = [:],
        sentAt seconds: Int64 = 20
    ) throws -> Admission {
        let existing = Admission.Existing(stored, partition: partition)
        let method: RequestMethod = news == .head ? .head : .get
        let exchange = try exchange(requester, method: method, more: more, sentAt: seconds)
        switch news {
        case .notModified:
            let head = ResponseHead(status: .notModified, fields: tag.merging(fields))
            return admission(of: head, as: .notModified(existing), in: exchange, mode: mode)
        case .head:
            let head = ResponseHead(status: .ok, fields: tag.merging(fields))
            return admission(of: head, as: .head(existing, bodyLength: 10), in: exchange, mode: mode)
        case .part:
            let head = part(fields)
            let kind = try joining(head, existing, ranges: [0..<10], in: exchange, mode: mode)
            return admission(of: head, as: kind, in: exchange, mode: mode)
        }
    }

    // MARK: Entries

    private static let entries: [Entry] = [
        Entry(clause: "RFC 9111 §3", fields: ["Cache-Control": "max-age=9"], shared: .shared),
        Entry(
            clause: "RFC 9111 §5.2.2.5",
            fields: ["Cache-Control": "no-store, max-age=9"],
            shared: .pass(.responseNoStore),
            own: .pass(.responseNoStore)
        ),
        Entry(clause: "RFC 9111 §4.1", fields: ["Vary": "*"], shared: .pass(.varyStar), own: .pass(.varyStar)),
        Entry(
            clause: "RFC 9111 §5.2.2.7",
            fields: ["Cache-Control": "private, max-age=9"],
            shared: .pass(.privateResponse)
        ),
        Entry(
            clause: "RFC 9111 §5.2.2.7",
            requester: .principal,
            fields: ["Cache-Control": "private, max-age=9"],
            shared: .pass(.privateResponse)
        ),
        Entry(
            clause: "RFC 9111 §3.5",
            requester: .authorization,
            fields: ["Cache-Control": "max-age=9"],
            shared: .pass(.authorization)
        ),
        Entry(
            clause: "RFC 9111 §3.5, §5.2.2.9",
            requester: .authorization,
            fields: ["Cache-Control": "public, max-age=9"],
            shared: .shared
        ),
        Entry(
            clause: "RFC 9111 §3.5, §5.2.2.10",
            requester: .authorization,
            fields: ["Cache-Control": "s-maxage=9"],
            shared: .shared
        ),
        Entry(
            clause: "RFC 9111 §3.5, §5.2.2.2",
            requester: .authorization,
            fields: ["Cache-Control": "must-revalidate, max-age=9"],
            shared: .shared
        ),
        Entry(clause: "RFC 6265 §3", requester: .cookie, fields: ["Cache-Control": "max-age=9"], shared: .own),
        Entry(
            clause: "RFC 6265 §3",
            requester: .cookie,
            fields: ["Cache-Control": "public, max-age=9"],
            shared: .shared
        ),
        Entry(clause: "of one principal", requester: .principal, fields: ["Cache-Control": "max-age=9"], shared: .own),
        Entry(
            clause: "of one principal, released",
            requester: .principal,
            fields: ["Cache-Control": "s-maxage=9"],
            shared: .shared
        ),
        Entry(
            clause: "RFC 9111 §7.3",
            fields: ["Cache-Control": "max-age=9", "Set-Cookie": "a=b"],
            shared: .shared
        ),
    ]

    @Test("RFC 9111 §3, §3.3: a response and a part of it are stored for the same users", arguments: entries)
    func entry(_ row: Entry) throws {
        for mode in [CacheOptions.Mode.shared, .private] {
            let expected = mode == .shared ? row.shared : row.own
            let exchange = try Self.exchange(row.requester)
            let whole = ResponseHead(status: .ok, fields: row.fields)
            #expect(Outcome(Self.admission(of: whole, as: .complete, in: exchange, mode: mode)) == expected, "\(mode)")
            let part = Self.part(row.fields)
            let kind = Admission.Kind.part(try Self.received(part))
            #expect(Outcome(Self.admission(of: part, as: kind, in: exchange, mode: mode)) == expected, "part, \(mode)")
        }
    }

    @Test("RFC 9111 §3, §4: a request sent for another user or target than the call's stores nothing")
    func refusals() throws {
        let good = try Self.exchange(.cookie)
        let elsewhere = RequestHead(method: .get, target: try target("https://example.com/b"))
        let rows: [(CacheReason, (inout Admission.Exchange) -> Void)] = [
            (.hiddenRequest, { $0.sent = nil }), (.otherTarget, { $0.sent = elsewhere }),
            (.otherPrincipal, { $0.sentPartition = nil }), (.otherPrincipal, { $0.sentPartition = "" }),
            (.otherPrincipal, { $0.sentPartition = "bob" }), (.content, { $0.hasUnkeyedContent = true }),
        ]
        let fields: HeaderFields = ["Cache-Control": "public, max-age=9"]
        let part = Self.part(fields)
        let existing = Admission.Existing(try Self.known(), partition: "alice")
        let kinds: [(ResponseHead, Admission.Kind, RequestMethod)] = [
            (ResponseHead(status: .ok, fields: fields), .complete, .get), (part, .part(try Self.received(part)), .get),
            (ResponseHead(status: .notModified, fields: fields), .notModified(existing), .get),
            (ResponseHead(status: .ok, fields: Self.tag.merging(fields)), .head(existing, bodyLength: 10), .head),
        ]
        for (head, kind, method) in kinds {
            var exchange = good
            exchange.sent?.method = method
            #expect(Self.admission(of: head, as: kind, in: exchange, mode: .private).action != .pass)
            for (reason, change) in rows {
                var refused = exchange
                change(&refused)
                let admission = Self.admission(of: head, as: kind, in: refused, mode: .private)
                #expect(Outcome(admission) == .pass(reason), "\(kind)")
                #expect(!admission.isShareable && refused.refusal == reason)
            }
        }
    }

    @Test(
        "RFC 5861 §4: an error of the origin is not stored if something stored may be served in its place",
        arguments: [500, 502, 503, 504, 501, 404],
        ["max-age=0", "private, max-age=0", "max-age=9"]
    )
    func errorOverStored(status: Int, cacheControl: String) throws {
        let head = ResponseHead(status: StatusCode(status), fields: ["Cache-Control": cacheControl])
        var exchange = try Self.exchange()
        #expect(Outcome(Self.admission(of: head, as: .complete, in: exchange, mode: .private)) == .own)
        exchange.hasStoredForErrors = true
        let expected: Outcome = [501, 404].contains(status) ? .own : .pass(.negativeOverStored)
        #expect(Outcome(Self.admission(of: head, as: .complete, in: exchange, mode: .private)) == expected)
    }

    // MARK: News of what is stored

    private static let updates: [Update] = [
        Update(clause: "RFC 9111 §4.3.4", fields: ["Cache-Control": "max-age=90"], shared: .freshen),
        Update(clause: "RFC 9111 §4.3.4", fields: [:], shared: .freshen),
        Update(
            clause: "RFC 9111 §5.2.2.7",
            fields: ["Cache-Control": "private, max-age=90"],
            shared: .remove,
            head: (.pass(.method), .freshen)
        ),
        Update(
            clause: "RFC 9111 §5.2.2.7, to one user",
            requester: .cookie,
            fields: ["Cache-Control": "private, max-age=90"],
            shared: .pass(.privateResponse),
            head: (.pass(.method), .freshen)
        ),
        Update(
            clause: "RFC 9111 §5.2.2.5",
            fields: ["Cache-Control": "no-store, max-age=90"],
            shared: .remove,
            own: .remove,
            head: (.pass(.method), .pass(.method))
        ),
        Update(
            clause: "RFC 9111 §5.2.2.5, to one user",
            requester: .principal,
            fields: ["Cache-Control": "no-store, max-age=90"],
            shared: .pass(.responseNoStore),
            own: .remove,
            head: (.pass(.method), .pass(.method))
        ),
        Update(
            clause: "RFC 9111 §3.5",
            requester: .authorization,
            fields: ["Cache-Control": "max-age=90"],
            shared: .pass(.authorization),
            head: (.pass(.method), .freshen)
        ),
        Update(
            clause: "RFC 9111 §3.5: the stored fields release it",
            requester: .authorization,
            stored: ["Cache-Control": "public, max-age=60"],
            fields: ["Age": "0"],
            shared: .freshen,
            head: (.pass(.method), .freshen)
        ),
        Update(
            clause: "RFC 9111 §3.5",
            requester: .authorization,
            fields: ["Cache-Control": "public, max-age=90"],
            shared: .freshen
        ),
        Update(
            clause: "a Cookie of one user",
            requester: .cookie,
            fields: ["Cache-Control": "max-age=90"],
            shared: .pass(.otherPrincipal)
        ),
        Update(
            clause: "a Cookie of one user, released",
            requester: .cookie,
            fields: ["Cache-Control": "public, max-age=90"],
            shared: .freshen
        ),
        Update(
            clause: "of one principal",
            requester: .principal,
            fields: ["Cache-Control": "max-age=90"],
            shared: .pass(.otherPrincipal)
        ),
        Update(
            clause: "RFC 9111 §7.3: a cookie of one user",
            requester: .cookie,
            stored: ["Cache-Control": "public, max-age=60"],
            fields: ["Set-Cookie": "sid=ALICE"],
            shared: .pass(.otherPrincipal)
        ),
        Update(
            clause: "RFC 9111 §7.3: a cookie of one user that is for all",
            requester: .cookie,
            stored: ["Cache-Control": "public, max-age=60"],
            fields: ["Cache-Control": "s-maxage=60", "Set-Cookie": "sid=ALL"],
            shared: .freshen
        ),
        Update(
            clause: "RFC 9111 §7.3: a cookie for a guest",
            stored: ["Cache-Control": "public, max-age=60"],
            fields: ["Set-Cookie": "sid=GUEST"],
            shared: .freshen
        ),
        Update(
            clause: "RFC 9111 §4.1",
            fields: ["Vary": "*"],
            shared: .remove,
            own: .remove,
            head: (.pass(.method), .pass(.method))
        ),
        Update(
            clause: "RFC 9111 §4.1, to one user",
            requester: .cookie,
            fields: ["Vary": "*"],
            shared: .pass(.varyStar),
            own: .remove,
            head: (.pass(.method), .pass(.method))
        ),
    ]

    @Test(
        "RFC 9111 §3.4, §4.3.4, §4.3.5: an update stores nothing that a 200 with the merged fields could not",
        arguments: updates,
        News.allCases
    )
    func update(_ row: Update, _ news: News) throws {
        for mode in [CacheOptions.Mode.shared, .private] {
            let stored = try Self.known(row.stored)
            let admission = try Self.admission(
                of: row.fields,
                as: news,
                about: stored,
                in: mode == .shared ? "" : row.requester.partition,
                to: row.requester,
                mode: mode
            )
            #expect(Outcome(admission) == row.expected(mode, by: news), "\(mode)")
        }
    }

    @Test(
        "RFC 9111 §4: a response to one user changes nothing in another user's partition",
        arguments: News.allCases
    )
    func otherPartition(_ news: News) throws {
        for fields: HeaderFields in [["Cache-Control": "max-age=90"], ["Cache-Control": "public, max-age=90"]] {
            for mode in [CacheOptions.Mode.shared, .private] {
                let admission = try Self.admission(
                    of: fields,
                    as: news,
                    about: try Self.known(),
                    in: "bob",
                    to: .principal,
                    mode: mode
                )
                #expect(Outcome(admission) == .pass(.otherPrincipal), "\(fields), \(mode)")
            }
        }
    }

    @Test("RFC 9111 §4.3.5: a HEAD with another validator removes what its requester may change")
    func otherValidator() throws {
        for (partition, expected) in [
            ("alice", Outcome.remove), ("", .pass(.otherPrincipal)), ("bob", .pass(.otherPrincipal)),
        ] {
            let admission = try Self.admission(
                of: ["ETag": "\"b\"", "Cache-Control": "public, max-age=9"],
                as: .head,
                about: try Self.known(),
                in: partition,
                to: .principal,
                mode: .private
            )
            #expect(Outcome(admission) == expected, "\(partition)")
        }
    }

    // MARK: Vary

    @Test(
        "RFC 9111 §4.1, §4.3.4: a Vary that an update adds is stored under the values of the request",
        arguments: News.allCases
    )
    func laterVary(_ news: News) throws {
        for mode in [CacheOptions.Mode.shared, .private] {
            let request: HeaderFields = ["X-User": "alice"]
            let admission = try Self.admission(
                of: ["Vary": "X-User"],
                as: news,
                about: try Self.known(),
                in: "",
                to: .guest,
                mode: mode,
                more: request
            )
            guard case .freshen(let filed) = admission.action else {
                Issue.record("\(Outcome(admission))")
                continue
            }
            #expect(filed.nominated == NominatedFields(vary: ["Vary": "X-User"], request: request, secret: []))
            #expect(!filed.nominated.matches(["X-User": "bob"], secret: []))
        }
    }

    @Test("RFC 9111 §4.3.4: an update for other nominated values concerns another variant", arguments: News.allCases)
    func otherVariant(_ news: News) throws {
        let stored = try Self.known(nominating: ["Vary": "X-User"], of: ["X-User": "alice"])
        for (user, expected) in [("alice", Outcome.freshen), ("bob", .pass(.noVariant))] {
            let admission = try Self.admission(
                of: ["Vary": "X-User"],
                as: news,
                about: stored,
                in: "",
                to: .guest,
                mode: .private,
                more: ["X-User": user]
            )
            #expect(Outcome(admission) == expected)
        }
    }

    // MARK: Order and use

    @Test(
        "RFC 9111 §4: an update that was requested before the stored response changes nothing",
        arguments: News.allCases,
        [(-1, true), (0, false), (20, false)] as [(Int64, Bool)]
    )
    func overtaken(_ news: News, _ row: (sentAt: Int64, isOvertaken: Bool)) throws {
        let admission = try Self.admission(
            of: ["Cache-Control": "max-age=90"],
            as: news,
            about: try Self.known(),
            in: "",
            to: .guest,
            mode: .private,
            sentAt: row.sentAt
        )
        #expect(Outcome(admission) == (row.isOvertaken ? .pass(.overtaken) : .freshen))
        if news == .head {
            let other = try Self.admission(
                of: ["ETag": "\"b\""],
                as: news,
                about: try Self.known(),
                in: "",
                to: .guest,
                mode: .private,
                sentAt: row.sentAt
            )
            #expect(Outcome(other) == (row.isOvertaken ? .pass(.overtaken) : .remove))
        }
    }

    @Test(
        "RFC 9111 §5.2.2.4: a response that needs validation answers no other request",
        arguments: [
            ("max-age=9", true), ("no-cache", false), ("no-cache, max-age=9", false), ("no-cache=\"set-cookie\"", true),
            ("no-store", false),
        ]
    )
    func shareable(_ cacheControl: String, _ isShareable: Bool) throws {
        let fields: HeaderFields = ["Cache-Control": cacheControl]
        let whole = ResponseHead(status: .ok, fields: fields)
        let exchange = try Self.exchange()
        #expect(Self.admission(of: whole, as: .complete, in: exchange, mode: .private).isShareable == isShareable)
        let part = Self.part(fields)
        let kind = Admission.Kind.part(try Self.received(part))
        #expect(Self.admission(of: part, as: kind, in: exchange, mode: .private).isShareable == isShareable)
        for news in News.allCases where news != .head {
            let admission = try Self.admission(
                of: fields,
                as: news,
                about: try Self.known(),
                in: "",
                to: .guest,
                mode: .private
            )
            #expect(admission.isShareable == isShareable, "\(news)")
        }
    }

    @Test(
        "A 304 that may not change the shared entry still answers waiting calls of its user from the store",
        arguments: [("max-age=60", true), ("no-cache", false)]
    )
    func shareableForOwn(_ stored: String, _ isShareable: Bool) throws {
        let admission = try Self.admission(
            of: ["Cache-Control": "max-age=9"],
            as: .notModified,
            about: try Self.known(["Cache-Control": stored]),
            in: "",
            to: .cookie,
            mode: .shared
        )
        #expect(Outcome(admission) == .pass(.otherPrincipal) && admission.isShareable == isShareable)
    }

    @Test("RFC 9111 §4.1: if such a 304 names another variant, it answers nobody else", arguments: [nil, "X-User"])
    func shareableForOwnVariant(_ vary: String?) throws {
        var fields: HeaderFields = ["Cache-Control": "max-age=9"]
        fields[.vary] = vary
        let admission = try Self.admission(
            of: fields,
            as: .notModified,
            about: try Self.known(["Cache-Control": "max-age=60"]),
            in: "",
            to: .cookie,
            mode: .shared
        )
        #expect(Outcome(admission) == .pass(.otherPrincipal) && admission.isShareable == (vary == nil))
    }

    // MARK: Parts

    @Test(
        "RFC 9111 §3.4, §7.3: a combined response is shared only if both parts are",
        arguments: [
            (.guest, "", "max-age=9", false, .shared), (.cookie, "", "max-age=9", false, .own),
            (.cookie, "", "public, max-age=9", false, .shared), (.cookie, "alice", "public, max-age=9", false, .own),
            (.cookie, "", "public, max-age=9", true, .shared), (.guest, "", "max-age=9", true, .shared),
            (.authorization, "", "max-age=9", false, .pass(.authorization)),
            (.guest, "", "private, max-age=9", false, .pass(.privateResponse)),
            (.guest, "", "no-store, max-age=9", false, .pass(.responseNoStore)),
        ] as [(Requester, String, String, Bool, Outcome)]
    )
    func joined(
        requester: Requester,
        partition: String,
        cacheControl: String,
        setsCookie: Bool,
        expected: Outcome
    ) throws {
        var fields: HeaderFields = ["Cache-Control": cacheControl]
        if setsCookie { fields[.setCookie] = "sid=X" }
        let ranges = try #require(StoredRanges(intervals: [5..<10], completeLength: 10))
        let stored = try Self.known(ranges: ranges)
        let head = Self.part(fields)
        let exchange = try Self.exchange(requester)
        let existing = Admission.Existing(stored, partition: partition)
        let kind = try Self.joining(head, existing, ranges: [5..<10], in: exchange, mode: .shared)
        #expect(Outcome(Self.admission(of: head, as: kind, in: exchange, mode: .shared)) == expected)
    }

    @Test(
        "RFC 9111 §7.3: a user's cookie in a combined part stays with that user, although the stored fields say public"
    )
    func joinedCookie() throws {
        let ranges = try #require(StoredRanges(intervals: [5..<10], completeLength: 10))
        for (cacheControl, expected) in [(nil, Outcome.own), ("public, max-age=9", .shared)] as [(String?, Outcome)] {
            let stored = try Self.known(["Cache-Control": "public, max-age=60"], ranges: ranges)
            var head = Self.part(["Set-Cookie": "sid=ALICE"])
            head.fields[.cacheControl] = cacheControl
            let exchange = try Self.exchange(.cookie)
            let existing = Admission.Existing(stored, partition: "")
            let kind = try Self.joining(head, existing, ranges: [5..<10], in: exchange, mode: .shared)
            #expect(Outcome(Self.admission(of: head, as: kind, in: exchange, mode: .shared)) == expected)
        }
    }

    @Test(
        "RFC 9110 §8.8.2.2, §15.3.7.3: a part is freshened and removed by any validator, and its validator stays weak",
        arguments: ["\"a\"", "W/\"a\"", nil]
    )
    func weakPart(tag: String?) throws {
        // The Date makes Last-Modified strong, and the Date is the update's.
        var fields: HeaderFields = ["Cache-Control": "max-age=9", "Last-Modified": date(-3)]
        fields[.eTag] = tag
        var stored = try stored(fields)
        stored.ranges = StoredRanges(intervals: [0..<5], completeLength: 10)
        let existing = Admission.Existing(stored, partition: "")
        func admission(_ news: HeaderFields) throws -> Admission {
            let update: HeaderFields = ["Date": date(30), "Last-Modified": date(-3)]
            let head = ResponseHead(status: .notModified, fields: update.merging(news))
            return Self.admission(of: head, as: .notModified(existing), in: try Self.exchange(), mode: .private)
        }
        let confirmed = try admission(["Cache-Control": "max-age=60, must-revalidate"])
        guard case .freshen(let freshened) = confirmed.action else {
            Issue.record("\(Outcome(confirmed))")
            return
        }
        #expect(freshened.cacheControl.mustRevalidate && freshened.ranges == stored.ranges)
        #expect((StrongValidator(freshened) != nil) == (tag == "\"a\""))
        #expect(Outcome(try admission(["Cache-Control": "no-store"])) == .remove)
        #expect(Outcome(try admission(["Vary": "*"])) == .remove)
    }

    @Test(
        "RFC 9110 §15.3.7.3: content codings of bytes that are identified by a tag or only by a date",
        arguments: [
            (true, nil, nil, true), (true, nil, "gzip", true), (true, "gzip", "gzip", true),
            (true, "br", "gzip", false),
            (false, nil, nil, true), (false, nil, "gzip", false), (false, "gzip", nil, false),
            (false, "gzip", "gzip", true), (false, "identity", nil, true), (false, nil, "identity", true),
        ] as [(Bool, String?, String?, Bool)]
    )
    func codings(hasTag: Bool, part: String?, stored coding: String?, isJoined: Bool) throws {
        let validator: HeaderFields =
            hasTag ? Self.tag : ["Last-Modified": date(-9_000), "Date": date(0)]
        var fields = validator.merging(["Content-Range": "bytes 0-4/10"])
        fields[.contentEncoding] = part
        let head = ResponseHead(status: .partialContent, fields: fields)
        var known = validator
        known[.contentEncoding] = coding
        let combination = PartCombination(
            of: try Self.received(head),
            head: head,
            with: try stored(known),
            ranges: try #require(StoredRanges(intervals: [5..<10], completeLength: 10)),
            asked: nil,
            requestTime: .noon,
            responseTime: .noon,
            mode: .private
        )
        #expect((combination != nil) == isJoined)
    }

    // MARK: Fields

    @Test(
        "RFC 9111 §3.2, RFC 9530 §2: fields that describe the stored bytes stay",
        arguments: News.allCases,
        [
            ("Content-Digest", false), ("Repr-Digest", false), ("Digest", false), ("Content-Encoding", false),
            ("Content-Type", false), ("X-Other", true),
        ]
    )
    func contentBound(_ news: News, _ row: (name: String, isReplaced: Bool)) throws {
        let name = try #require(FieldName(row.name))
        // Two parts of two codings are not joined, whatever their fields.
        if news == .part, name == .contentEncoding { return }
        let stored = try Self.known(["Cache-Control": "max-age=60", name: "stored"])
        let admission = try Self.admission(
            of: [name: "news"],
            as: news,
            about: stored,
            in: "",
            to: .guest,
            mode: .private
        )
        guard case .freshen(let freshened) = admission.action else {
            Issue.record("\(Outcome(admission))")
            return
        }
        #expect(freshened.head.fields[name] == (row.isReplaced ? "news" : "stored"))
    }

    @Test("RFC 1864: Content-MD5 describes the stored bytes only if a strong tag proves it", arguments: [true, false])
    func contentMD5(isStrong: Bool) throws {
        let tag = isStrong ? "\"a\"" : "W/\"a\""
        let stored = try stored(["ETag": tag, "Cache-Control": "max-age=60", "Content-MD5": "stored"])
        let head = ResponseHead(status: .notModified, fields: ["ETag": tag, "Content-MD5": "news"])
        let existing = Admission.Existing(stored, partition: "")
        let admission = Self.admission(of: head, as: .notModified(existing), in: try Self.exchange(), mode: .private)
        guard case .freshen(let freshened) = admission.action else {
            Issue.record("\(Outcome(admission))")
            return
        }
        #expect(freshened.head.fields["Content-MD5"] == (isStrong ? "news" : "stored"))
    }
}
