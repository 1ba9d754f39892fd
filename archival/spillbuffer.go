package archival

import (
	"encoding/json"
	"fmt"
	"os"
)

// spillBytes is how much a spillBuffer holds in memory.
const spillBytes = 1 << 20

// spillName is the pattern of a spillBuffer's file. Files of this name that a killed server leaves are removed when the
// next one starts.
const spillName = "loci-spool-*"

// spillBuffer holds records: in memory up to spillBytes, and beyond in a temporary file without a name, which the
// system removes when the process ends. Its zero value is ready.
type spillBuffer struct {
	memory []byte
	file   *os.File
	size   int64
}

// record is the place of a record in a spillBuffer.
type record struct {
	at   int64
	size int
}

func (b *spillBuffer) add(v any) (record, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return record{}, err
	}
	if b.memory = append(b.memory, text...); len(b.memory) > spillBytes || b.file != nil {
		err = b.spill()
	}
	at := b.size
	b.size += int64(len(text))
	return record{at, len(text)}, err
}

// spill moves what is in memory to the file.
func (b *spillBuffer) spill() (err error) {
	if b.file == nil {
		if b.file, err = os.CreateTemp("", spillName); err != nil {
			return fmt.Errorf("create a temporary file for passages: %w", err)
		}
		_ = os.Remove(b.file.Name()) // where the system refuses, close removes it
	}
	_, err = b.file.Write(b.memory)
	b.memory = b.memory[:0]
	return err
}

func (b *spillBuffer) read(r record, v any) error {
	if b.file == nil {
		return json.Unmarshal(b.memory[r.at:r.at+int64(r.size)], v)
	}
	text := make([]byte, r.size)
	if _, err := b.file.ReadAt(text, r.at); err != nil {
		return fmt.Errorf("read passages from a temporary file: %w", err)
	}
	return json.Unmarshal(text, v)
}

// close removes the file. It drops errors, because nobody reads the file again.
func (b *spillBuffer) close() {
	if b.file != nil {
		_ = b.file.Close()
		_ = os.Remove(b.file.Name())
	}
}
