// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// A type of single values, which only JSON can represent on their own.
protocol BareScalar {}

extension Bool: BareScalar {}
extension Int: BareScalar {}
extension Int8: BareScalar {}
extension Int16: BareScalar {}
extension Int32: BareScalar {}
extension Int64: BareScalar {}
extension UInt: BareScalar {}
extension UInt8: BareScalar {}
extension UInt16: BareScalar {}
extension UInt32: BareScalar {}
extension UInt64: BareScalar {}
extension Float: BareScalar {}
extension Double: BareScalar {}
extension Decimal: BareScalar {}
extension Date: BareScalar {}
extension URL: BareScalar {}
extension UUID: BareScalar {}
extension Optional: BareScalar where Wrapped: BareScalar {}
