// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A class for each number: the loading system makes protocols of a class alone, so what a protocol is to do must follow from
/// its class, and classes can be made at run time only by generics.
///
/// A number is written in binary as nested types, so the millionth class is twenty types deep. What the runtime keeps of a
/// class is never freed; ``InterceptionRegistry`` bounds how many there are.
enum InterceptionSlot {
    /// The class of a number; another one for each.
    static func protocolClass(number: Int) -> InterceptingURLProtocol.Type {
        var digits: any SlotDigits.Type = SlotStart.self
        var rest = number.magnitude
        while rest > 0 {
            digits = rest % 2 == 1 ? one(before: digits) : zero(before: digits)
            rest /= 2
        }
        return protocolClass(digits)
    }

    private static func zero<Digits: SlotDigits>(before digits: Digits.Type) -> any SlotDigits.Type {
        SlotZero<Digits>.self
    }

    private static func one<Digits: SlotDigits>(before digits: Digits.Type) -> any SlotDigits.Type {
        SlotOne<Digits>.self
    }

    private static func protocolClass<Digits: SlotDigits>(_ digits: Digits.Type) -> InterceptingURLProtocol.Type {
        SlottedURLProtocol<Digits>.self
    }
}

/// Adds nothing: all that the loading system calls stands in the base class, which is not generic.
private final class SlottedURLProtocol<Digits: SlotDigits>: InterceptingURLProtocol {}

private protocol SlotDigits {}
private enum SlotStart: SlotDigits {}
private enum SlotZero<Rest: SlotDigits>: SlotDigits {}
private enum SlotOne<Rest: SlotDigits>: SlotDigits {}
