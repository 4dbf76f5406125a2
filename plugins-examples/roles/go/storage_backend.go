// A storage backend: keeps each key in a file of its own. Enough for some thousand keys: a page reads all of them.
//
// Its entry has `config: { dir: /var/lib/store }` and `sandbox: { fs: { write: [/var/lib/store] } }`.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"talonplugin"
)

type settings struct {
	Dir string `json:"dir"`
}

type row struct {
	key      []byte
	revision string
	value    []byte
}

var (
	directory string
	// Of two writes at once, one compares first.
	writing sync.Mutex
)

// fileOf is the file of a key: its digest has the right length and the right characters for a name.
func fileOf(key []byte) string { return filepath.Join(directory, talonplugin.Seal(key).SHA256) }

func read(path string) (*row, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parts := bytes.SplitN(data, []byte("\n"), 3)
	if len(parts) < 3 {
		return nil, errors.New("a file is damaged")
	}
	var sealed talonplugin.Sealed
	if err := json.Unmarshal(parts[1], &sealed); err != nil {
		return nil, err
	}
	key, err := sealed.Open()
	return &row{key, string(parts[0]), parts[2]}, err
}

func lookup(key []byte) (*row, error) {
	if directory == "" {
		return nil, nil
	}
	found, err := read(fileOf(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

// syncFile makes a file durable, or the names in a directory.
func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

// write leaves the file as a whole after a power cut, or not at all.
func write(key []byte, revision string, value []byte) error {
	sealed, err := json.Marshal(talonplugin.Seal(key))
	if err != nil {
		return err
	}
	next := fileOf(key) + ".next"
	if err := os.WriteFile(next, append([]byte(revision+"\n"+string(sealed)+"\n"), value...), 0o600); err != nil {
		return err
	}
	if err := syncFile(next); err != nil {
		return err
	}
	if err := os.Rename(next, fileOf(key)); err != nil {
		return err
	}
	return syncFile(directory)
}

func open(sealed *talonplugin.Sealed) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	return sealed.Open()
}

func scan(asked talonplugin.StorageRequest) (interface{}, error) {
	begins, err := open(asked.Prefix)
	if err != nil {
		return nil, err
	}
	behind, err := open(asked.After)
	if err != nil {
		return nil, err
	}
	var rows []*row
	if directory != "" {
		entries, err := os.ReadDir(directory)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if strings.Contains(entry.Name(), ".") {
				continue
			}
			found, err := read(filepath.Join(directory, entry.Name()))
			if err != nil {
				return nil, err
			}
			if bytes.HasPrefix(found.key, begins) && bytes.Compare(found.key, behind) > 0 {
				rows = append(rows, found)
			}
		}
	}
	sort.Slice(rows, func(i, j int) bool { return bytes.Compare(rows[i].key, rows[j].key) < 0 })
	reply := talonplugin.StorageReply{Outcome: "page", More: asked.Limit > 0 && len(rows) > asked.Limit}
	for at, found := range rows {
		if asked.Limit > 0 && at == asked.Limit {
			break
		}
		item := talonplugin.StorageItem{Key: talonplugin.Seal(found.key), Revision: found.revision, Bytes: int64(len(found.value))}
		reply.Items = append(reply.Items, item)
	}
	return reply, nil
}

func store(_ *talonplugin.Call, asked talonplugin.StorageRequest) (interface{}, error) {
	writing.Lock()
	defer writing.Unlock()
	if asked.Op == "scan" {
		return scan(asked)
	}
	if (asked.Op != "get" && asked.Op != "set" && asked.Op != "delete") || asked.Key == nil {
		return nil, talonplugin.Refuse("this storage backend knows get, set and delete of a key, and scan")
	}
	key, err := asked.Key.Open()
	if err != nil {
		return nil, err
	}
	found, err := lookup(key)
	if err != nil {
		return nil, err
	}
	switch {
	case asked.Op == "get" && found == nil:
		return talonplugin.StorageReply{Outcome: "absent"}, nil
	case asked.Op == "get":
		sealed := talonplugin.Seal(found.value)
		return talonplugin.StorageReply{Outcome: "found", Revision: found.revision, Value: &sealed}, nil
	case directory == "":
		return talonplugin.StorageReply{Outcome: "refused", Reason: "config: dir is not set"}, nil
	case (found == nil) != (asked.Expected == nil), found != nil && found.revision != *asked.Expected:
		return talonplugin.StorageReply{Outcome: "conflict"}, nil
	case asked.Op == "delete":
		if err := os.Remove(fileOf(key)); err != nil {
			return nil, err
		}
		return talonplugin.StorageReply{Outcome: "deleted"}, syncFile(directory)
	}
	value, err := open(asked.Value)
	if err != nil {
		return nil, err
	}
	// One that no key ever had.
	drawn := make([]byte, 16)
	if _, err := rand.Read(drawn); err != nil {
		return nil, err
	}
	revision := hex.EncodeToString(drawn)
	return talonplugin.StorageReply{Outcome: "stored", Revision: revision}, write(key, revision, value)
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "Keeps the state of plugins in files.")
	talonplugin.Settings(made, func(config settings) error { directory = config.Dir; return nil })
	talonplugin.Add(made, "store", "Keeps the state of plugins.", store, talonplugin.Roles("storage_backend"))
	return made
}

func main() { plugin().Serve() }
