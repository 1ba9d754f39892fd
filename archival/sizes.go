package archival

import (
	"sync"
	"time"
)

// sizeLife is how long an archive that was found to be large is not counted again.
const sizeLife = time.Minute

// sizes remembers which archives are large, because counting their passages takes longer than searching them. It is
// safe for concurrent use.
type sizes struct {
	mu    sync.Mutex
	until map[int64]time.Time // by the archive's key
}

// large returns the keys of the archives that are known to be large.
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

// addLarge remembers an archive for sizeLife. It does not prolong the time of one that is remembered already.
func (s *sizes) addLarge(key int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[int64]time.Time{}
	}
	if _, known := s.until[key]; !known {
		s.until[key] = time.Now().Add(sizeLife)
	}
}
