"""What threads wait for that stand still in the kernel, by the names of its functions (/proc/PID/task/TID/wchan). Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Standstill:
    """For what threads wait in the kernel."""

    what: str
    fix: str


@dataclass(frozen=True)
class Known:
    """One that names of the kernel's functions tell; `is_all`: where all of them do."""

    functions: re.Pattern[str]
    standstill: Standstill
    is_all: bool = False

    def fits(self, stuck_in: Sequence[str]) -> bool:
        found = [self.functions.search(name) is not None for name in stuck_in]
        return bool(found) and (all(found) if self.is_all else any(found))


def standstill_in(stuck_in: Sequence[str]) -> Standstill:
    return next((known.standstill for known in KNOWN if known.fits(stuck_in)), ON_DISK)


OUTPUT_FIX = (
    "Find what is at the other end (ls -l /proc/PID/fd/1, then lsof of that pipe or socket): a log shipper, tee, journald. "
    "Mend it, or end it; nothing is to be restarted for an output that is taken again."
)
GIVE_LEASE_BACK = (
    "End that process, or have it give the lease back: Samba takes none with `kernel oplocks = no`; of nfsd, the NFS server of "
    "that machine, it is a client's that has the file open. Nothing is to be restarted."
)
KNOWN = (
    Known(
        re.compile("break_lease"),
        Standstill(
            "another program has a lease on a file that they open (fcntl F_SETLEASE), and does not give it back before "
            "fs.lease-break-time is over",
            GIVE_LEASE_BACK,
        ),
    ),
    Known(
        re.compile("fanotify"),
        Standstill(
            "a program that is asked before any file is opened does not answer: a virus scanner, an agent that watches files",
            "Mend that program, or end it: the kernel then lets all of them go on. Let it leave the directories of Kafka and "
            "ZooKeeper alone. Nothing is to be restarted.",
        ),
    ),
    Known(
        re.compile("percpu_rwsem|sb_start_write|freeze_super"),
        Standstill(
            "their file system is frozen, as for a snapshot or a backup that has not ended: nothing is written there",
            "End that snapshot or backup (its agent, the hypervisor's, LVM's; dmsetup info: SUSPENDED), or let the file system "
            "go on: `fsfreeze -u MOUNT` (findmnt -T DIRECTORY names it). Nothing is to be restarted, no disk to be replaced.",
        ),
    ),
    Known(
        re.compile("fuse|request_wait_answer"),
        Standstill(
            "a file system that a program serves (FUSE) does not answer",
            "Find that program (findmnt, file systems of type fuse), and mend or restart it.",
        ),
    ),
    Known(
        re.compile("nfs|rpc_"),
        Standstill(
            "a file system of the network (NFS) does not answer",
            "Look at its server and at the way there (nfsstat -m, rpcinfo -p SERVER). It goes on by itself once that answers.",
        ),
    ),
    Known(
        re.compile("^(?:txg|zio|zil|dbuf|dmu)_|^cv_(?:timed)?wait"),
        Standstill(
            "a pool of ZFS does not take or give what they write or read",
            "Look at `zpool status -x`: of a pool that is SUSPENDED bring its disks back, then `zpool clear POOL`; of one that "
            "is only slow see `zpool iostat -v 1`, a scrub or a resilver. It goes on by itself then.",
        ),
    ),
    Known(
        re.compile("ceph|^rbd_"),
        Standstill(
            "storage of Ceph does not answer",
            "Look at `ceph -s` and `ceph health detail` (placement groups that are inactive, OSDs that are full), and at the "
            "way there from that machine. It goes on by itself once that answers.",
        ),
    ),
    Known(
        re.compile("cifs|smb2_|^wait_for_response"),
        Standstill(
            "a share of the network (SMB) does not answer",
            "Look at its server and at the way there (/proc/fs/cifs/DebugData). It goes on by itself once that answers. Data "
            "of Kafka and ZooKeeper do not belong there.",
        ),
    ),
    Known(
        re.compile(r"drbd|^md_|^raid\d+_"),
        Standstill(
            "a mirror or a RAID below their file system does not take what is written",
            "Look at /proc/mdstat or `drbdadm status`: a disk of it that fails, a resync, a peer that is gone. Mend that; it "
            "goes on by itself.",
        ),
    ),
    Known(
        re.compile("autofs"),
        Standstill(
            "a directory that is mounted as it is used is not mounted",
            "Look at automount (systemctl status autofs, or the .automount unit), and at what it would mount.",
        ),
    ),
    Known(
        re.compile("audit_log"),
        Standstill(
            "the kernel's audit log is full, and nobody takes what is in it",
            "Look at auditd (its disk, auditctl -s: backlog, lost), and start it again; `auditctl --backlog_wait_time 0` lets "
            "all go on at once.",
        ),
    ),
    Known(
        re.compile("coredump"),
        Standstill(
            "it has crashed, and its memory is being written into a file",
            "Wait for it, or where it does not end, look at the program in /proc/sys/kernel/core_pattern and at its disk. Then "
            "start it; its hs_err file says why it crashed.",
        ),
    ),
    Known(
        re.compile("throttle_direct_reclaim|^compact_zone"),
        Standstill(
            "its whole machine has next to no memory free, and whoever asks for some waits until the kernel has found it",
            "Look what uses its memory, the kernel's own included (free -m, top, slabtop), and whether it swaps to a slow disk "
            "or writes to a file system of the network; raise vm.min_free_kbytes. No limit of a control group is in the way.",
        ),
    ),
    Known(
        re.compile("mem_cgroup|reclaim"),
        Standstill(
            "the memory that it asks for is over a limit of its control group, which slows it down, or lets it stand still",
            "Raise memory.high or memory.max of its control group (memory.limit_in_bytes of version 1; MemoryHigh=, MemoryMax= "
            "of its unit): it goes on at once. Or lower -Xmx, for its next start.",
        ),
    ),
    Known(
        re.compile("userfault"),
        Standstill(
            "a page of its memory is brought by another program, which does not: a migration or a snapshot of its machine",
            "Look at what moves or restores this machine or process (CRIU, a live migration), and let it end.",
        ),
    ),
    Known(
        re.compile("pipe_write$|^sock_alloc_send|^unix_stream|^sock_wait_for_wmem"),
        Standstill(
            "they write into a pipe or socket that nobody reads: who takes its output hangs, and whatever prints waits for it",
            OUTPUT_FIX,
        ),
        is_all=True,
    ),
)
ON_DISK = Standstill(
    "mostly a disk, or a file system, that does not answer",
    "Look at the disk of its data: dmesg, iostat -x 1; whether its file system is frozen (fsfreeze), or on a network "
    "that is gone. It goes on by itself once the disk answers.",
)
