// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastCrypto

func makeSeal(_ bytes: [UInt8]) throws -> AEADSeal {
    try AEADSeal(current: SealingKey(id: 1, bytes: bytes))
}
