package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that Postgres runs as. It is this process's user; but if that is root, it is an unprivileged one,
// because Postgres refuses to run as root.
type account struct {
	name string
	// credential switches a child process to the user, without root's groups. It is nil if the user is this process's own.
	credential *syscall.Credential
}

// accountFor returns the account for a cluster in data: the owner of data, if data exists.
func accountFor(data string) (account, error) {
	uid := os.Geteuid()
	stat := syscall.Stat_t{Uid: uint32(uid)} //nolint:gosec // a user's number has 32 bits
	if err := syscall.Lstat(data, &stat); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, fmt.Errorf("look at %s: %w", data, err)
	}
	switch owner := int(stat.Uid); {
	case owner == 0 && uid == 0:
		return unprivileged()
	case owner == uid:
		return account{name: name(uid)}, nil
	case uid == 0:
		return account{name(owner), &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}, nil
	default:
		return account{}, fmt.Errorf("the data in %s belongs to user %s, not to %s: start Loci as that user, "+
			"or set LOCI_HOME to another directory", data, name(owner), name(uid))
	}
}

func unprivileged() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
			gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
			if uidErr == nil && gidErr == nil {
				return account{name, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
			}
		}
	}
	return account{}, errors.New("root may not run Postgres, and there is no user postgres or nobody to run it as: " +
		"start Loci as an ordinary user, or add one with: useradd --system postgres")
}

func name(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// canEnter returns an error if the account may not enter dir or one of its parents; the error names the directory. If
// the account is this process's own user, it checks nothing: a later access gives the error.
func (a account) canEnter(dir string) error {
	for path := dir; a.credential != nil; path = filepath.Dir(path) {
		var stat syscall.Stat_t
		if err := syscall.Stat(path, &stat); err != nil {
			return fmt.Errorf("look at %s: %w", path, err)
		}
		if uint32(stat.Mode)&a.enterBit(stat) == 0 {
			return fmt.Errorf("user %s, whom Postgres runs as, may not enter %s: "+
				"set LOCI_HOME to a directory open to that user, or open this one with: chmod a+x %s", a.name, path, path)
		}
		if path == filepath.Dir(path) {
			break
		}
	}
	return nil
}

// enterBit returns the permission bit that the system checks: the owner's, the group's or the others', whichever
// matches first.
func (a account) enterBit(stat syscall.Stat_t) uint32 {
	switch {
	case stat.Uid == a.credential.Uid:
		return 0o100
	case stat.Gid == a.credential.Gid:
		return 0o010
	}
	return 0o001
}
