// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct StructuredMapTests {
    @Test("A repeated key changes the value but not the position")
    func places() {
        let map: StructuredMap<Int> = ["a": 1, "b": 2, "a": 3]
        #expect(map.keys == ["a", "b"] && map["a"] == 3 && map.count == 2)
        #expect(map.map(\.value) == [3, 2])
        #expect(map != ["b": 2, "a": 3])
        #expect(Set([map, ["a": 3, "b": 2]]).count == 1)
    }

    @Test("A map behaves like a list of pairs, whatever its size", arguments: propertySeeds)
    func behavesAsPairs(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var map = StructuredMap<Int>()
        var model: [(key: String, value: Int)] = []
        for step in 0..<600 {
            // Eighteen keys, half of them present on average, cross the size where the index begins again and again.
            let key = "k\(Int.random(in: 0..<18, using: &source))"
            let place = model.firstIndex { $0.key == key }
            if Bool.random(using: &source) {
                map[key] = nil
                if let place { model.remove(at: place) }
            } else {
                map[key] = step
                if let place { model[place].value = step } else { model.append((key, step)) }
            }
            #expect(map.keys == model.map(\.key) && map.map(\.value) == model.map(\.value))
            #expect(map[key] == model.first { $0.key == key }?.value)
        }
    }
}
