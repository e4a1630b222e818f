// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import HoldfastStorage

    /// The scripts by which leases change, each of them in one step for all processes.
    ///
    /// A lease is a string with the holder's token that expires; beside it lies for some seconds what came of the last one, as
    /// "token outcome". Both lie in the slot of their store. Who deletes or prolongs a lease shows its
    /// token first: a holder whose lease has run out harms nobody's.
    enum LeaseScript {
        /// KEYS lease, end; ARGV token, milliseconds. Gives "granted outcome" ("-" where none is known) or "held token".
        static let take = """
            local holder = redis.call('GET', KEYS[1])
            if holder then return 'held ' .. holder end
            redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
            local last = redis.call('GET', KEYS[2])
            return 'granted ' .. (last and string.match(last, '%S+$') or '-')
            """

        /// KEYS lease; ARGV token, milliseconds. Gives "kept" or "lost".
        static let renew = """
            if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
            redis.call('PEXPIRE', KEYS[1], ARGV[2])
            return 'kept'
            """

        /// KEYS lease, end; ARGV token, outcome, milliseconds of memory, channel. Gives "ended" or "lost".
        static let end = """
            if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
            local word = ARGV[1] .. ' ' .. ARGV[2]
            redis.call('DEL', KEYS[1])
            redis.call('SET', KEYS[2], word, 'PX', ARGV[3])
            redis.call('PUBLISH', ARGV[4], word)
            return 'ended'
            """

        /// KEYS lease, end; ARGV token. Gives "out milliseconds", "ended outcome", or "gone" where nothing is known of it any more.
        static let look = """
            if redis.call('GET', KEYS[1]) == ARGV[1] then return 'out ' .. redis.call('PTTL', KEYS[1]) end
            local last = redis.call('GET', KEYS[2])
            if last and string.sub(last, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
                return 'ended ' .. string.sub(last, #ARGV[1] + 2)
            end
            return 'gone'
            """
    }

    /// Where a lease lies.
    struct LeasePlace: Sendable {
        let lease: String
        let end: String

        /// - Parameters:
        ///   - prefix: what all keys of the store begin with, its hash tag included.
        ///   - digest: of the primary key, in hexadecimal.
        init(prefix: String, digest: String, variant: StoreKey) {
            let name = "\(prefix)fill:\(digest):\(variant.bytes.map { LeasePlace.hex($0) }.joined())"
            lease = name
            end = name + ":end"
        }

        static func hex(_ byte: UInt8) -> String {
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }
    }
#endif
