"""RDMA WRITE, READ and an atomic between two QPs of one process, through pyverbs."""
import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
          | e.IBV_ACCESS_REMOTE_ATOMIC)


class Side:
    def __init__(self, context):
        self.pd = PD(context)
        self.cq = CQ(context, 16)
        self.mr = MR(self.pd, 4096, ACCESS)
        cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap,
                                         sq_sig_all=True))

    def connect(self, peer):
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = 4
        attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer = 12
        attr.timeout = 14
        attr.retry_cnt = 7
        attr.rnr_retry = 7
        attr.qp_access_flags = ACCESS
        attr.ah_attr = AHAttr(port_num=1, dlid=1)
        self.qp.to_rts(attr)

    def post(self, opcode, peer, length, **more):
        wr = SendWR(num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)], opcode=opcode)
        if opcode == e.IBV_WR_ATOMIC_FETCH_AND_ADD:
            wr.set_wr_atomic(peer.mr.rkey, peer.mr.buf, more["add"], 0)
        else:
            wr.set_wr_rdma(peer.mr.rkey, peer.mr.buf)
        self.qp.post_send(wr)
        while True:
            count, completions = self.cq.poll(1)
            peer.cq.poll(1)
            if count:
                assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
                return


context = Context(name=sys.argv[1])
assert context.query_port(1).state == e.IBV_PORT_ACTIVE
left, right = Side(context), Side(context)
left.connect(right)
right.connect(left)

left.mr.write(b"over the wire", 13)
left.post(e.IBV_WR_RDMA_WRITE, right, 13)
assert right.mr.read(13, 0) == b"over the wire"

right.mr.write((40).to_bytes(8, sys.byteorder), 8)
left.post(e.IBV_WR_ATOMIC_FETCH_AND_ADD, right, 8, add=2)
assert int.from_bytes(left.mr.read(8, 0), sys.byteorder) == 40
left.post(e.IBV_WR_RDMA_READ, right, 8)
assert int.from_bytes(left.mr.read(8, 0), sys.byteorder) == 42
print("fine")
