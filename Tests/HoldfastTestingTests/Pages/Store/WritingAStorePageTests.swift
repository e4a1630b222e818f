// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("DictionaryStore keeps the promises", .timeLimit(.minutes(20)))
struct DictionaryStoreTests {
    static let stores = StoreFactory("dictionary") { capacity in
        StoreSubject(DictionaryStore(capacity: capacity))
    }

    @Test(arguments: StoreConformance.laws)
    func law(_ law: StoreConformance.Law) async {
        let findings = await law.findings(of: Self.stores)
        #expect(findings.isEmpty, "\(findings)")
    }
}
