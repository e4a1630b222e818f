// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Testing

@testable import Quickstart

@Suite("The resources of the built-in origin", .timeLimit(.minutes(20)))
struct ResourceTests {
    @Test("The same seed gives the same resources")
    func seeded() {
        #expect(Resource.catalogue(count: 60, seed: 3) == Resource.catalogue(count: 60, seed: 3))
        #expect(Resource.catalogue(count: 60, seed: 3) != Resource.catalogue(count: 60, seed: 4))
    }

    @Test("Kinds have their share of the calls, whatever the seed and the number", arguments: [20, 80, 300], [1, 7])
    func kinds(_ count: Int, _ seed: UInt64) {
        let zipf = Zipf(count: count)
        var shares: [ResourceKind: Double] = [:]
        for resource in Resource.catalogue(count: count, seed: seed) {
            shares[resource.kind, default: 0] += zipf.share(of: resource.number)
        }
        for kind in ResourceKind.allCases {
            #expect(abs(shares[kind, default: 0] - kind.share) < 0.05, "\(kind)")
        }
        #expect(ResourceKind.allCases.reduce(0) { $0 + $1.share } == 1)
    }

    @Test("Sizes and lifetimes are within their bounds; most bodies are small and some are not")
    func sizes() {
        let resources = Resource.catalogue(count: 2_000, seed: 11)
        #expect(resources.allSatisfy { Resource.sizes.contains($0.size) })
        #expect(resources.allSatisfy { (60...3_600).contains($0.maxAge) })
        let sorted = resources.map(\.size).sorted()
        #expect(sorted[1_000] < 2_000)
        #expect(sorted[1_980] > 50_000)
    }

    @Test("A body is always the same, and different for another resource, seed or language")
    func bodies() {
        let resources = Resource.catalogue(count: 2, seed: 1)
        let first = BodySource(seed: 1)
        let body = first.body(of: resources[0], in: .english)
        #expect(body.count == resources[0].size)
        #expect(body == BodySource(seed: 1).body(of: resources[0], in: .english))
        #expect(body != first.body(of: resources[0], in: .german))
        #expect(body.prefix(64).elementsEqual(first.body(of: resources[1], in: .english).prefix(64)) == false)
        #expect(body != BodySource(seed: 2).body(of: resources[0], in: .english))
    }

    @Test("Failures have their share, a third each, and do not depend on the order of requests")
    func mishaps() {
        var plain = 0
        var later = 0
        var dropped = 0
        var seconds = 0
        for resource in 0..<100 {
            for send in 0..<100 {
                let mishap = Mishap.of(send: send, resource: resource, share: 0.3, seed: 5)
                #expect(mishap == Mishap.of(send: send, resource: resource, share: 0.3, seed: 5))
                switch mishap {
                case .unavailable(nil): plain += 1
                case .unavailable(let retryAfter?):
                    later += 1
                    seconds += retryAfter
                case .droppedConnection: dropped += 1
                case nil: break
                }
            }
        }
        for count in [plain, later, dropped] { #expect((900...1_100).contains(count)) }
        #expect((80...170).contains(seconds))
    }

    @Test("A share of 0 fails nothing", arguments: 0..<50)
    func none(_ send: Int) {
        #expect(Mishap.of(send: send, resource: 1, share: 0, seed: 5) == nil)
    }

    @Test("The origin takes one to three milliseconds")
    func thought() {
        let times = (0..<1_000).map { Mishap.microsecondsOfThought(send: $0, resource: 2, seed: 9) }
        #expect(times.allSatisfy { (1_000...3_000).contains($0) })
        #expect(Set(times).count > 500)
    }
}
