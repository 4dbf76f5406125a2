package talonplugin

import (
	"crypto/sha256"
	"encoding/base64"
)

// Sealed is bytes in the role storage_backend: base64url without padding, and their SHA-256.
type Sealed struct {
	Data   string `json:"data"`
	SHA256 string `json:"sha256"`
}

func sealDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Seal puts bytes into their envelope.
func Seal(data []byte) Sealed {
	return Sealed{Data: base64.RawURLEncoding.EncodeToString(data), SHA256: sealDigest(data)}
}

// Open takes the bytes out; an error if they are not those of the digest.
func (sealed Sealed) Open() ([]byte, error) {
	data, err := base64.RawURLEncoding.DecodeString(sealed.Data)
	if err != nil {
		return nil, Refuse("an envelope is not base64url without padding")
	}
	if sealDigest(data) != sealed.SHA256 {
		return nil, Refuse("the digest of an envelope is one of other bytes")
	}
	return data, nil
}

// StorageRequest is what a storage backend is to do: get, set, delete or scan.
type StorageRequest struct {
	Op       string  `json:"op" help:"get, set, delete or scan"`
	Key      *Sealed `json:"key,omitempty" help:"The key"`
	Value    *Sealed `json:"value,omitempty" help:"The value"`
	Expected *string `json:"expected,omitempty" help:"The revision that the key has to have"`
	Prefix   *Sealed `json:"prefix,omitempty" help:"How the keys begin"`
	After    *Sealed `json:"after,omitempty" help:"Only keys behind this one"`
	Limit    int     `json:"limit,omitempty" help:"How many keys at most"`
}

// StorageReply is what it answers: docs/extensions/storage-backend.md has which outcome needs what.
type StorageReply struct {
	Outcome  string        `json:"outcome"`
	Revision string        `json:"revision,omitempty"`
	Value    *Sealed       `json:"value,omitempty"`
	Items    []StorageItem `json:"items,omitempty"`
	More     bool          `json:"more,omitempty"`
	Reason   string        `json:"reason,omitempty"`
}

// StorageItem is one key of a page, with the size of its value.
type StorageItem struct {
	Key      Sealed `json:"key"`
	Revision string `json:"revision"`
	Bytes    int64  `json:"bytes"`
}
