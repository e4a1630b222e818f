// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The order in which slots were used last: a list linked by index, every step O(1).
///
/// Slots are small numbers that the owner hands out and uses again; a slot is in the list or not.
struct RecencyList {
    private struct Link {
        var newer = -1
        var older = -1
        var isListed = false
    }

    private var links: [Link] = []
    private var newest = -1
    private var oldest = -1

    /// The slot used longest ago.
    var last: Int? { oldest < 0 ? nil : oldest }

    /// Makes `slot` the one used last, whether it was listed or not.
    mutating func touch(_ slot: Int) {
        if newest == slot { return }
        remove(slot)
        while links.count <= slot { links.append(Link()) }
        links[slot] = Link(newer: -1, older: newest, isListed: true)
        if newest >= 0 { links[newest].newer = slot } else { oldest = slot }
        newest = slot
    }

    /// Takes `slot` out; nothing happens when it is not listed.
    mutating func remove(_ slot: Int) {
        guard contains(slot) else { return }
        let link = links[slot]
        if link.newer >= 0 { links[link.newer].older = link.older } else { newest = link.older }
        if link.older >= 0 { links[link.older].newer = link.newer } else { oldest = link.newer }
        links[slot] = Link()
    }

    /// Whether `slot` is listed.
    func contains(_ slot: Int) -> Bool {
        slot < links.count && links[slot].isListed
    }
}
