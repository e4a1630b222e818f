// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct HeadUpdateTests {
    private func decide(
        _ stored: StoredResponse,
        _ fields: HeaderFields,
        status: StatusCode = .ok,
        method: RequestMethod = .head,
        request: HeaderFields = [:],
        directive: CacheDirective = .default,
        options: CacheOptions = .private
    ) throws -> Admission.Action {
        try headAdmission(
            of: ResponseHead(status: status, fields: fields),
            about: stored,
            to: RequestHead(method: method, target: target(), fields: request),
            directive: directive,
            options: options
        ).action
    }

    @Test(
        "RFC 9111 §4.3.5, §3.2: the fields of a 200 to HEAD replace the stored ones and make the response fresh again"
    )
    func update() throws {
        let old = try stored(["Cache-Control": "max-age=9", "Date": date(0), "A": "1", "B": "1", "Content-Type": "x/y"])
        guard
            case .freshen(let new) = try decide(
                old,
                [
                    "Cache-Control": "max-age=90", "Date": date(20), "A": "2", "Content-Type": "z/z",
                    "Connection": "A2", "Content-Length": "5",
                ]
            )
        else {
            Issue.record("not updated")
            return
        }
        #expect(
            new.head.fields == [
                "B": "1", "Content-Type": "x/y", "Cache-Control": "max-age=90", "Date": date(20), "A": "2",
            ]
        )
        #expect(new.isFresh(now: .noon.plus(100), options: .private))
        #expect(!old.isFresh(now: .noon.plus(20), options: .private))
    }

    @Test(
        "RFC 9111 §4.3.5: each validator and length it has must equal the stored ones; without any it says nothing",
        arguments: [
            (["ETag": "\"a\""], ["ETag": "\"a\""], true), (["ETag": "\"a\""], ["ETag": "W/\"a\""], true),
            (["ETag": "\"a\""], ["ETag": "\"b\""], false), (["ETag": "\"a\""], [:], nil),
            ([:], ["ETag": "\"a\""], false), (["ETag": "\"a\""], ["ETag": "a"], false),
            (["Last-Modified": date(-9)], ["Last-Modified": date(-9)], true),
            (["Last-Modified": date(-9)], ["Last-Modified": date(-8)], false),
            ([:], ["Last-Modified": date(-9)], false), ([:], ["Last-Modified": "x"], false),
            (["ETag": "\"a\"", "Last-Modified": date(-9)], ["ETag": "\"a\"", "Last-Modified": date(-8)], false),
            ([:], ["Content-Length": "5"], true), ([:], ["Content-Length": "6"], false),
            ([:], ["Content-Length": "x"], false), ([:], [:], nil), (["Last-Modified": date(-9)], [:], nil),
        ] as [(HeaderFields, HeaderFields, Bool?)]
    )
    func validators(known: HeaderFields, received: HeaderFields, isUpdate: Bool?) throws {
        let verdict = try decide(try stored(known), received)
        switch isUpdate {
        case .none: #expect(verdict == .pass)
        case .some(false): #expect(verdict == .remove)
        case .some(true):
            guard case .freshen = verdict else {
                Issue.record("\(verdict)")
                return
            }
        }
    }

    @Test("RFC 9111 §4.3.5: the length of decoded content says nothing, a status other than the stored one does")
    func lengthAndStatus() throws {
        let tag: HeaderFields = ["ETag": "\"a\""]
        let length: HeaderFields = ["Content-Length": "99"]
        guard case .freshen = try decide(try stored(tag, decoded: true), tag.merging(length)) else {
            Issue.record("not updated")
            return
        }
        #expect(try decide(try stored([:], decoded: true), length) == .pass)
        #expect(try decide(try stored([:], status: .notFound), [:]) == .remove)
    }

    @Test("RFC 9111 §3, §4.3.5: other statuses, other methods and unstorable responses change nothing")
    func keep() throws {
        let old = try stored(["ETag": "\"a\""])
        let changed: HeaderFields = ["ETag": "\"b\""]
        for status in [204, 206, 302, 304, 404, 410, 500] {
            #expect(try decide(old, changed, status: StatusCode(status)) == .pass)
        }
        #expect(try decide(old, changed, method: .get) == .pass)
        #expect(try decide(old, changed.merging(["Cache-Control": "no-store"])) == .pass)
        #expect(try decide(old, changed, request: ["Cache-Control": "no-store"]) == .pass)
        #expect(try decide(old, changed, directive: .noStore) == .pass)
        #expect(try decide(old, changed.merging(["Cache-Control": "private"]), options: .shared) == .pass)
        #expect(try decide(old, changed, request: ["Authorization": "x"], options: .shared) == .pass)
        #expect(try decide(old, changed) == .remove)
    }
}

/// What a response to HEAD does to a stored response of five bytes, twenty seconds after noon.
func headAdmission(
    of response: ResponseHead,
    about stored: StoredResponse,
    to request: RequestHead,
    directive: CacheDirective = .default,
    options: CacheOptions = .private
) -> Admission {
    Admission(
        of: response,
        as: .head(Admission.Existing(stored, partition: ""), bodyLength: 5),
        in: Admission.Exchange(
            lookedUp: request,
            sent: request,
            requestTime: .noon.plus(20),
            responseTime: .noon.plus(20),
            directive: directive
        ),
        options: options,
        secret: []
    )
}
