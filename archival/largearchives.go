package archival

import (
	"crypto/sha256"
	"sync"
	"time"
)

// sizeLife is how long a large archive is not counted again.
const sizeLife = time.Minute

// sizes remembers which archives are large, because counting their passages takes longer than searching them. It is
// safe for concurrent use.
type sizes struct {
	until sync.Map // archive key → time.Time
}

// large returns the keys of the archives that are remembered as large.
func (s *sizes) large() []int64 {
	keys := []int64{}
	s.until.Range(func(key, until any) bool {
		if time.Now().After(until.(time.Time)) {
			s.until.Delete(key)
		} else {
			keys = append(keys, key.(int64))
		}
		return true
	})
	return keys
}

// addLarge remembers an archive for sizeLife. For an archive that is remembered already, the time is not extended.
func (s *sizes) addLarge(key int64) { s.until.LoadOrStore(key, time.Now().Add(sizeLife)) }

// maxWide limits the filters that are remembered.
const maxWide = 10_000

// wide remembers which filters many passages pass, because counting these takes as long as a search. It is safe for
// concurrent use.
type wide struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time // by the hash of what names the filter
}

func (w *wide) has(filter string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.until[sha256.Sum256([]byte(filter))])
}

// add remembers a filter for sizeLife.
func (w *wide) add(filter string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.until) >= maxWide || w.until == nil {
		w.until = map[[sha256.Size]byte]time.Time{}
	}
	w.until[sha256.Sum256([]byte(filter))] = time.Now().Add(sizeLife)
}
