package archival

import (
	"sync"
	"time"
)

// sizes remembers for a while which archives are large: to count their passages takes longer than to search them. It is safe for all
// goroutines.
type sizes struct {
	mu    sync.Mutex
	until map[int64]time.Time // by the archive's key
}

// large are the archives that are known to be.
func (s *sizes) large() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, keys := time.Now(), []int64{}
	for key, until := range s.until {
		if now.After(until) {
			delete(s.until, key)
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

// note remembers an archive that was found to be large, from now on; one that is remembered already is not remembered longer.
func (s *sizes) note(key int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[int64]time.Time{}
	}
	if _, known := s.until[key]; !known {
		s.until[key] = time.Now().Add(scopeLife)
	}
}
