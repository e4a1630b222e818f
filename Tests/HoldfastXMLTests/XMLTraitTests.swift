// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastServices
import HoldfastXML
import Testing

@Suite("The trait XML")
struct XMLTraitTests {
    @Test("With the trait the formats exist; without it the module still builds, and using them does not compile")
    func formats() {
        #if XML
            #expect(OutputFormat.XML.accept == "text/xml")
            #expect(InputFormat.XML(rootNode: "r").name == "XML")
        #else
            #expect(OutputFormat.JSON.accept == "application/json")
        #endif
    }
}
