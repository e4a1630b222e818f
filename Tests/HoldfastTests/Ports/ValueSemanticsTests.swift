// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Responses, options and contexts are values, whatever they contain", .timeLimit(.minutes(20)))
struct ValueSemanticsTests {
    /// A change of one part, and a look at it.
    struct Part<Whole: Sendable>: Sendable, CustomTestStringConvertible {
        let name: String
        let change: @Sendable (inout Whole) -> Void
        let look: @Sendable (Whole) -> String

        init<Value>(
            _ name: String,
            _ path: any WritableKeyPath<Whole, Value> & Sendable,
            _ value: @escaping @Sendable () -> Value
        ) {
            self.name = name
            change = { $0[keyPath: path] = value() }
            look = { "\($0[keyPath: path])" }
        }

        init(
            _ name: String,
            _ change: @escaping @Sendable (inout Whole) -> Void,
            _ look: @escaping @Sendable (Whole) -> String
        ) {
            (self.name, self.change, self.look) = (name, change, look)
        }

        var testDescription: String { name }
    }

    private func check<Whole>(_ whole: Whole, _ part: Part<Whole>, _ all: [Part<Whole>]) {
        let before = all.map { $0.look(whole) }
        var copy = whole
        part.change(&copy)
        #expect(part.look(copy) != part.look(whole))
        #expect(all.map { $0.look(whole) } == before, "the copy's change shows in the original")
        for other in all where other.name != part.name {
            #expect(other.look(copy) == other.look(whole), "\(other.name) changed as well")
        }
        // And the other way about: what the original becomes later, the copy does not see.
        var original = whole
        let kept = original
        part.change(&original)
        #expect(all.map { $0.look(kept) } == before)
    }

    static let responseParts: [Part<Response>] = [
        Part("status", \.status) { .notFound },
        Part("fields", \.fields) { ["X": "1"] },
        Part("body", \.body) { ResponseBody(ByteChunk([1, 2, 3])) },
        Part("url", \.url) { URL(string: "http://origin.example/other") },
        Part("source", \.source) { .fresh },
        Part("requestTime", \.requestTime) { Timestamp(secondsSinceEpoch: 1) },
        Part("responseTime", \.responseTime) { Timestamp(secondsSinceEpoch: 2) },
        Part("contentDecoded", \.contentDecoded) { true },
        Part("attempts", \.attempts) {
            [
                AttemptRecord(
                    number: 1,
                    start: MonotonicInstant(sinceOrigin: .zero),
                    end: MonotonicInstant(sinceOrigin: .zero)
                )
            ]
        },
        Part("cacheDecision", \.cacheDecision) { CacheDecision(.hit, reason: .fresh) },
        Part("presentation", \.presentation) { .hidden },
        Part("hasAgeDeducted", \.hasAgeDeducted) { true },
        Part("storedOrigin", \.storedOrigin) { Origin() },
    ]

    @Test("A response", arguments: responseParts)
    func response(_ part: Part<Response>) {
        check(Response(status: .ok, fields: ["A": "b"], url: URLRequest.get().url), part, Self.responseParts)
    }

    static let optionParts: [Part<CallOptions>] = [
        Part("operationName", \.operationName) { "op" },
        Part("cache", \.cache) { .reload },
        Part("principal", \.principal) { "alice" },
        Part("cachesContent", \.cachesContent) { .raw },
        Part("tags", \.tags) { ["t"] },
        Part("timeout", \.timeout) { .seconds(1) },
        Part("isForeignHop", \.isForeignHop) { true },
        Part("retryRules", \.retryRules) { RetryRules.never },
        Part("retrierFactory", \.retrierFactory) { NilRetrier.Factory() },
        Part("acceptance", \.acceptance) { .successful },
        Part("isIdempotent", \.isIdempotent) { true },
        Part("bearsAuthorization", \.usesAuthorization) { false },
        Part("credentialFields", \.credentialFields) { ["X-Key"] },
        Part("prepare", \.prepare) { [{ _, _ in }] },
        Part("exactHead", \.exactHead) {
            try? ExactRequestHead(method: "get", origin: "http://origin.example", requestTarget: "/x")
        },
        Part("onInterimResponse", \.onInterimResponse) { { _ in } },
        Part("transportDetails", \.transportDetails) { Origin() },
    ]

    @Test("The options of a call", arguments: optionParts)
    func options(_ part: Part<CallOptions>) {
        check(CallOptions(), part, Self.optionParts)
    }

    @Test("Whether options are the default ones, and what they affect", arguments: optionParts)
    func concerns(_ part: Part<CallOptions>) {
        #expect(CallOptions().areDefault)
        #expect(!CallOptions().concernReuse)
        #expect(!CallOptions().concernAttempts)
        var options = CallOptions()
        part.change(&options)
        // This one stands for itself: it says whose credential a call bears, which hooks settle.
        #expect(options.areDefault == (part.name == "bearsAuthorization"))
        let reuse: Set = ["cache", "cachesContent", "credentialFields", "exactHead"]
        #expect(options.concernReuse == reuse.contains(part.name))
        #expect(options.concernAttempts == ["retryRules", "retrierFactory", "prepare"].contains(part.name))
        #expect(CallOptions().areDefault)
    }

    @Test("A part of the cache directive can be changed in place")
    func partOfDirective() {
        var options = CallOptions()
        let copy = options
        options.cache.maxStale = .seconds(1)
        options.tags.insert("t")
        #expect(options.cache == .maxStale(.seconds(1)))
        #expect(copy.cache == .default)
        #expect(copy.tags.isEmpty)
        #expect(copy.areDefault && !options.areDefault)
        options.cache.maxStale = nil
        // What was changed back is no longer known to be the default, and says nothing all the same.
        #expect(!options.areDefault)
        #expect(!options.concernReuse)
    }

    @Test("An acceptance affects attempts if it checks them one by one")
    func checkedAttempts() {
        var options = CallOptions()
        options.acceptance = .successful
        #expect(!options.concernAttempts)
        options.acceptance?.checksAttempts = true
        #expect(options.concernAttempts)
    }

    static let contextParts: [Part<CallContext>] = [
        Part("deadline", \.deadline) { MonotonicInstant(sinceOrigin: .seconds(1)) },
        Part("attemptDeadline", \.attemptDeadline) { MonotonicInstant(sinceOrigin: .seconds(2)) },
        Part("attempt", \.attempt) { 3 },
        Part("wantsNewConnection", \.wantsNewConnection) { true },
        Part("options.tags", \.options.tags) { ["t"] },
        Part("redirectCount", \.redirectCount) { 4 },
        Part("isForeignHop", \.isForeignHop) { true },
        Part("withholdsAdditions", \.withholdsAdditions) { true },
        Part("callerFields", \.callerFields) { ["X-Own": "1"] },
        Part("mayBeApplied", \.mayBeApplied) { true },
        Part("state", { $0[Mark.self] = Mark(text: "a") }, { "\($0[Mark.self]?.text ?? "none")" }),
        Part("fetchPath", \.fetchPath) { [ObjectIdentifier(Origin.self)] },
        Part("subject", \.subject) { CallSubject(.get(), context: CallContext(), operationName: "op") },
        Part("verdict", \.verdict) { Verdict() },
    ]

    struct Mark: Sendable { let text: String }

    @Test("The context of a call", arguments: contextParts)
    func context(_ part: Part<CallContext>) {
        check(CallContext(), part, Self.contextParts)
        // And with all that few calls have in place already.
        var full = CallContext()
        full[Mark.self] = Mark(text: "full")
        check(full, part, Self.contextParts)
    }

    @Test("A value removed from a context is gone there and stays in its copies")
    func cleared() {
        var context = CallContext()
        context[Mark.self] = Mark(text: "a")
        var copy = context
        copy[Mark.self] = nil
        #expect(copy[Mark.self] == nil)
        #expect(context[Mark.self]?.text == "a")
        context.forgetHookStates(from: 1)
        #expect(context[Mark.self]?.text == "a")
        context.forgetHookStates(from: 0)
        #expect(context[Mark.self] == nil)
    }

    @Test("Setting the head of a response sets both parts")
    func head() {
        var response = Response(status: .ok, fields: ["A": "b"])
        let copy = response
        response.head = ResponseHead(status: .notFound, fields: ["C": "d"])
        #expect(response.status == .notFound)
        #expect(response.fields == ["C": "d"])
        #expect(copy.head == ResponseHead(status: .ok, fields: ["A": "b"]))
    }

    private final class Origin: RemovableOrigin {
        func remove() async {}
    }
}
